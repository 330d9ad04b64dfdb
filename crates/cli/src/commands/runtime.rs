//! `jurat runtime`.

use std::{os::unix::fs::PermissionsExt as _, path::Path, sync::Arc, time::Duration};

use clap::ValueEnum as _;
use jurat_core::{judge::Price, policy::CLAIM};
use jurat_runtime::{
    Capabilities, ExecutorOptions, ExecutorService, KernelCompat, Secret,
    engines::{CommandExecutor, EchoExecutor, EchoMode, OpenAiExecutor, openai::OpenAiOptions},
};
use tokio::sync::oneshot;

use super::{
    CommandContext,
    serve::{bind, listening, url_of},
};
use crate::{
    args::{self, EngineNameArg, RuntimeArgs},
    config,
    failure::CliFailure,
    logging,
    signals::ShutdownSignals,
};

/// Time limit for the work in progress at shutdown, because a hanging executor would never finish.
const GRACE: Duration = Duration::from_secs(5);
const OPENAI: &str = "https://api.openai.com/v1";
const MODEL_TIMEOUT: Duration = Duration::from_mins(2);

pub(super) async fn run(context: &CommandContext, args: RuntimeArgs) -> anyhow::Result<u8> {
    logging::start_server(&context.config, None)?;
    let executor = executor(&args)?;
    let token = args.token_env.as_deref().map(|name| secret("--token-env", name)).transpose()?;
    let compat = match args.compat {
        Some(args::CompatArg::WattSwarm) => KernelCompat::WattSwarm,
        None => KernelCompat::Jurat,
    };
    let evidence_allow = args.evidence_allow.clone();
    let nodes = args.node_key.clone();
    let options =
        ExecutorOptions { compat, token, evidence_allow, nodes, ..ExecutorOptions::default() };

    let mut signals = ShutdownSignals::listen()?;
    let listener = bind(&args.listen).await?;
    let url = url_of(&listener)?;
    let (stop, stopped) = oneshot::channel::<()>();
    let serving = jurat_runtime::serve(listener, executor, options, async { drop(stopped.await) });
    let mut serving = Box::pin(serving);
    listening(context.out, &url)?;
    tokio::select! {
        result = &mut serving => result?,
        () = signals.next() => {
            drop(stop);
            tokio::select! {
                result = tokio::time::timeout(GRACE, &mut serving) => if let Ok(result) = result { result? },
                () = signals.next() => {}
            }
        }
    }
    Ok(0)
}

fn executor(args: &RuntimeArgs) -> anyhow::Result<Arc<dyn ExecutorService>> {
    refuse_options_of_others(args)?;
    Ok(match args.engine {
        EngineNameArg::Echo => {
            let mode = args.mode.unwrap_or(EchoMode::Honest);
            let known = EchoMode::ALL.iter().find(|(known, _)| *known == mode);
            let model = known.map_or("echo", |(_, name)| name);
            Arc::new(EchoExecutor { capabilities: capabilities(args, "jurat-echo", model), mode })
        }
        EngineNameArg::Command => Arc::new(command(args)?),
        EngineNameArg::OpenAi => Arc::new(openai(args)?),
    })
}

/// Refuses the options of other engines: an option that would be ignored is a mistake.
fn refuse_options_of_others(args: &RuntimeArgs) -> anyhow::Result<()> {
    let options = [
        ("--mode", EngineNameArg::Echo, args.mode.is_some()),
        ("--base-url", EngineNameArg::OpenAi, args.base_url.is_some()),
        ("--model", EngineNameArg::OpenAi, args.model.is_some()),
        ("--key-env", EngineNameArg::OpenAi, args.key_env.is_some()),
        ("--input-price", EngineNameArg::OpenAi, args.input_price.is_some()),
        ("--pass-env", EngineNameArg::Command, !args.pass_env.is_empty()),
        ("--hear-events", EngineNameArg::Command, args.hear_events),
        ("-- PROGRAM", EngineNameArg::Command, !args.program.is_empty()),
    ];
    let foreign = options.iter().find(|(_, of, is_given)| *is_given && *of != args.engine);
    let Some((option, of, _)) = foreign else { return Ok(()) };
    let engine = of.to_possible_value();
    let engine = engine.as_ref().map_or("another", |value| value.get_name());
    Err(CliFailure::usage(format!(
        "`{option}` is for `--engine {engine}` only; leave it out, or choose that engine"
    )))
}

/// Whether the program can be run: a bare name must be found in the search path.
fn can_be_run(program: &Path, search: &str) -> bool {
    let is_program = |path: &Path| {
        path.metadata().is_ok_and(|it| it.is_file() && it.permissions().mode() & 0o111 != 0)
    };
    if program.components().count() > 1 {
        return is_program(program);
    }
    std::env::split_paths(search).any(|folder| is_program(&folder.join(program)))
}

fn command(args: &RuntimeArgs) -> anyhow::Result<CommandExecutor> {
    let [program, arguments @ ..] = args.program.as_slice() else {
        return Err(CliFailure::usage(
            "`--engine command` needs a program: add `-- PROGRAM ARGS…`",
        ));
    };
    let name = program.file_name().unwrap_or(program.as_os_str());
    let name = Path::new(name).display().to_string();
    let arguments = arguments.iter().map(|it| it.display().to_string()).collect();
    let capabilities = capabilities(args, "jurat-command", &name);
    let mut executor = CommandExecutor::new(capabilities, program.clone(), arguments);
    executor.hears_events = args.hear_events;
    for name in &args.pass_env {
        let value = config::variable(name).ok_or_else(|| {
            CliFailure::usage(format!("`--pass-env {name}`: the variable is not set"))
        })?;
        executor.environment.insert(name.clone(), value);
    }
    let search = executor.environment.get("PATH").map_or("", String::as_str);
    if !can_be_run(program, search) {
        let program = program.display();
        let place = if search.is_empty() { "the PATH" } else { search };
        return Err(CliFailure::usage(format!(
            "there is no executable program `{program}`; give its path, or put it into one of {place}"
        )));
    }
    Ok(executor)
}

fn openai(args: &RuntimeArgs) -> anyhow::Result<OpenAiExecutor> {
    let Some(model) = &args.model else {
        return Err(CliFailure::usage("`--engine openai` needs `--model NAME`"));
    };
    let options = OpenAiOptions {
        base_url: args.base_url.clone().unwrap_or_else(|| OPENAI.to_owned()),
        model: model.clone(),
        key: args.key_env.as_deref().map(|name| secret("--key-env", name)).transpose()?,
        timeout: MODEL_TIMEOUT,
        price: args.input_price.zip(args.output_price).map(|(input, output)| Price {
            input_micros_per_million: input,
            output_micros_per_million: output,
        }),
    };
    Ok(OpenAiExecutor::new(capabilities(args, "jurat-openai", model), options)?)
}

fn capabilities(args: &RuntimeArgs, family: &str, model: &str) -> Capabilities {
    Capabilities {
        task_types: args.task_types.clone(),
        profiles: args.profiles.clone(),
        provider_family: args.provider_family.clone().unwrap_or_else(|| family.to_owned()),
        model_id: args.model_id.clone().unwrap_or_else(|| model.to_owned()),
        policies: vec![CLAIM.to_owned()],
    }
}

fn secret(flag: &str, name: &str) -> anyhow::Result<Secret> {
    let value = config::variable(name);
    let value = value.ok_or_else(|| {
        CliFailure::usage(format!("`{flag}` names the variable `{name}`, which is not set"))
    })?;
    Ok(Secret::new(value))
}
