//! Judges over real sockets: what they are sent, and what their faults amount to.
