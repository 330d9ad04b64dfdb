//! The entries of the tools for rounds.

use jurat_core::account::caller::Scope;
use jurat_wire::api::{
    mcp::rounds::{ListRoundsArguments, RoundArguments},
    rounds::ErasedBody,
};
use serde_json::Value;

use super::{TextAuthor, ToolEffect, ToolEntry};
use crate::mcp::{render, rounds, schema};

pub(super) static ALL: &[ToolEntry] = &[
    ToolEntry {
        name: "list_rounds",
        scopes: &[Scope::RoundsRead],
        title: "List rounds",
        text: "Lists the rounds of the account, newest first, one page at a time: the request in one line, the state and the outcome.",
        effect: ToolEffect::Reads,
        input: schema::input::<ListRoundsArguments>,
        output: schema::any_object,
        run: rounds::list,
        summary: render::counted,
        author: TextAuthor::Caller,
    },
    ToolEntry {
        name: "get_round",
        scopes: &[Scope::RoundsRead],
        title: "Show a round",
        text: "Returns a full round: the request, the state and, once it has ended, the decision and each replica's answer.",
        effect: ToolEffect::Reads,
        input: schema::input::<RoundArguments>,
        output: schema::any_object,
        run: rounds::get,
        summary: round,
        author: TextAuthor::Executors,
    },
    ToolEntry {
        name: "erase_round",
        scopes: &[Scope::RoundsCreate],
        title: "Erase the content of a round",
        text: "Permanently erases the request and answers of a round that has ended. Its decision stays, with the digests of the erased content.",
        effect: ToolEffect::Ends,
        input: schema::input::<RoundArguments>,
        output: schema::output::<ErasedBody<'static>>,
        run: rounds::erase,
        summary: render::done,
        author: TextAuthor::Caller,
    },
];

fn round(body: &Value) -> String {
    let (id, state) = (render::text(&body["round_id"]), render::text(&body["state"]));
    format!("Round `{id}` is `{state}`.")
}
