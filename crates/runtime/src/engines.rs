//! Executors that are ready to use.

pub mod arithmetic;
pub mod command;
pub mod echo;
pub mod openai;
mod shaped;

pub use command::CommandExecutor;
pub use echo::{EchoExecutor, EchoMode};
pub use openai::OpenAiExecutor;
