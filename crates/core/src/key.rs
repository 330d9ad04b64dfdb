//! The form of API keys: `jrt_live_<id>_<secret><checksum>`.
