//! confidence
