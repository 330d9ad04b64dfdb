//! `jurat knowledge`.

pub(crate) mod args;

use std::{
    fs::File,
    io::{BufWriter, Write as _},
    path::Path,
};

use jurat_client::knowledge;
use serde_json::{Value, json};

use super::{CommandContext, shared::pages::PagedList};
use crate::{
    args::{ExportKnowledgeArgs, KnowledgeCommand},
    client::ApiClient,
    failure::CliFailure,
    output::{Output, OutputFormat},
};

pub(super) async fn run(context: &CommandContext, command: KnowledgeCommand) -> anyhow::Result<u8> {
    let KnowledgeCommand::Export(args) = command;
    export(context, args).await
}

/// Writes each page as it arrives, so a long history needs little memory.
async fn export(context: &CommandContext, args: ExportKnowledgeArgs) -> anyhow::Result<u8> {
    let call = knowledge::list(args.task_type.as_deref(), args.task_id.as_deref());
    let pages = PagedList::whole(call);
    let out = context.out;
    let Some(file) = args.out else {
        let count = context
            .with_client(async |client| {
                each(client, pages, |lines| Ok(out.data(&lines.join("\n"))?)).await
            })
            .await?;
        note(out, count);
        return Ok(0);
    };
    let count = context.with_client(async |client| written(client, pages, &file).await).await?;
    let name = file.display().to_string();
    match out.format {
        OutputFormat::Json => out.data(&json!({ "file": name, "decisions": count }).to_string())?,
        OutputFormat::Text => out.data(&format!("exported {name}"))?,
    }
    note(out, count);
    Ok(0)
}

fn note(out: Output, count: usize) {
    if count == 0 {
        out.note("no remembered decisions yet");
    }
}

/// Creates the file when the first decisions arrive, or at the end if there are none.
async fn written(client: &ApiClient, pages: PagedList, file: &Path) -> anyhow::Result<usize> {
    let failed = |error: std::io::Error| {
        CliFailure::usage(format!("`{}` cannot be written: {error}", file.display()))
    };
    let mut open: Option<BufWriter<File>> = None;
    let count = each(client, pages, |lines| {
        if open.is_none() {
            open = Some(BufWriter::new(File::create(file).map_err(failed)?));
        }
        let Some(writer) = &mut open else { return Ok(()) };
        lines.iter().try_for_each(|line| writeln!(writer, "{line}")).map_err(failed)
    })
    .await?;
    let mut writer = match open {
        Some(writer) => writer,
        None => BufWriter::new(File::create(file).map_err(failed)?),
    };
    writer.flush().map_err(failed)?;
    Ok(count)
}

/// Passes the lines of each page to `take`, and counts them.
async fn each(
    client: &ApiClient,
    mut pages: PagedList,
    mut take: impl FnMut(&[String]) -> anyhow::Result<()>,
) -> anyhow::Result<usize> {
    let mut count = 0;
    loop {
        let page = pages.next(client).await?;
        let lines: Vec<String> = page.items.iter().map(Value::to_string).collect();
        if !lines.is_empty() {
            take(&lines)?;
        }
        count += lines.len();
        if !pages.has_more() {
            return Ok(count);
        }
    }
}
