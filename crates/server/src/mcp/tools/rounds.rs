//! The entries of the tools for rounds.

use jurat_core::caller::Scope;
use jurat_wire::api::{
    mcp::rounds::{ListRoundsArguments, RoundArguments},
    rounds::ErasedBody,
};
use serde_json::Value;

use super::{Author, Effect, Entry};
use crate::mcp::{render, rounds, schema};

pub(super) static ALL: &[Entry] = &[
    Entry {
        name: "list_rounds",
        scopes: &[Scope::RoundsRead],
        title: "List rounds",
        text: "Lists the rounds of the account, newest first, a page at a time: what was asked in one line, where each stands, and what came of it.",
        effect: Effect::Reads,
        input: schema::input::<ListRoundsArguments>,
        output: schema::any_object,
        run: rounds::list,
        summary: render::counted,
        author: Author::Caller,
    },
    Entry {
        name: "get_round",
        scopes: &[Scope::RoundsRead],
        title: "Show a round",
        text: "Returns a round in full: the request, where it stands, and once it has ended what was decided and what each replica said.",
        effect: Effect::Reads,
        input: schema::input::<RoundArguments>,
        output: schema::any_object,
        run: rounds::get,
        summary: round,
        author: Author::Executors,
    },
    Entry {
        name: "erase_round",
        scopes: &[Scope::RoundsCreate],
        title: "Erase what was said in a round",
        text: "Erases for ever what was asked and said in a round that has ended. Its decision stays, with the digests of what is gone.",
        effect: Effect::Ends,
        input: schema::input::<RoundArguments>,
        output: schema::output::<ErasedBody<'static>>,
        run: rounds::erase,
        summary: render::done,
        author: Author::Caller,
    },
];

fn round(body: &Value) -> String {
    let (id, state) = (render::text(&body["round_id"]), render::text(&body["state"]));
    format!("Round `{id}` is `{state}`.")
}
