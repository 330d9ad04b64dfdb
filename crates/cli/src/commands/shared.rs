//! Helpers that several commands share.

pub(crate) mod confirm;
pub(crate) mod gate;
pub(crate) mod input;
pub(crate) mod junit;
pub(crate) mod pages;
