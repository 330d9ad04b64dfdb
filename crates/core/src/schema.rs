//! JSON Schemas from callers, compiled within bounds.
