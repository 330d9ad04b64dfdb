//! `jurat runtime`.

use std::{path::Path, sync::Arc, time::Duration};

use jurat_core::policy::CLAIM;
use jurat_runtime::{
    Capabilities, Compat, Executor, Options, Secret,
    engines::{CommandExecutor, EchoExecutor, EchoMode, OpenAiExecutor, openai::OpenAiOptions},
};
use tokio::sync::oneshot;

use super::{
    Context,
    serve::{bind, listening, url_of},
};
use crate::{
    args::{self, EngineName, Runtime},
    config,
    failure::Failure,
    logging,
    signals::Signals,
};

/// An executor that hangs would never be done with what it does.
const GRACE: Duration = Duration::from_secs(5);
const MODEL_TIMEOUT: Duration = Duration::from_mins(2);

pub(super) async fn run(context: &Context, args: Runtime) -> anyhow::Result<u8> {
    logging::start(&context.config, logging::OF_A_SERVER, args.log_format)?;
    let executor = executor(&args)?;
    let token = args.token_env.as_deref().map(|name| secret("--token-env", name)).transpose()?;
    let compat = match args.compat {
        Some(args::Compat::WattSwarm) => Compat::WattSwarm,
        None => Compat::Jurat,
    };
    let options = Options { compat, token, ..Options::default() };

    let mut signals = Signals::listen()?;
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

fn executor(args: &Runtime) -> anyhow::Result<Arc<dyn Executor>> {
    if args.engine != EngineName::Command && !args.program.is_empty() {
        return Err(Failure::usage("a program after `--` needs `--engine command`"));
    }
    if args.engine != EngineName::Echo && args.mode != EchoMode::Honest {
        return Err(Failure::usage("`--mode` is for `--engine echo` only"));
    }
    Ok(match args.engine {
        EngineName::Echo => {
            let mode = EchoMode::ALL.iter().find(|(mode, _)| *mode == args.mode);
            let model = mode.map_or("echo", |(_, name)| name);
            Arc::new(EchoExecutor {
                capabilities: capabilities(args, "jurat-echo", model),
                mode: args.mode,
            })
        }
        EngineName::Command => Arc::new(command(args)?),
        EngineName::OpenAi => Arc::new(openai(args)?),
    })
}

fn command(args: &Runtime) -> anyhow::Result<CommandExecutor> {
    let [program, arguments @ ..] = args.program.as_slice() else {
        return Err(Failure::usage("`--engine command` needs a program: add `-- PROGRAM ARGS…`"));
    };
    let name = program.file_name().unwrap_or(program.as_os_str());
    let name = Path::new(name).display().to_string();
    let arguments = arguments.iter().map(|it| it.display().to_string()).collect();
    let capabilities = capabilities(args, "jurat-command", &name);
    let mut executor = CommandExecutor::new(capabilities, program.clone(), arguments);
    for name in &args.pass_env {
        let value = config::variable(name)
            .ok_or_else(|| Failure::usage(format!("`--pass-env {name}`: it is not set")))?;
        executor.environment.insert(name.clone(), value);
    }
    Ok(executor)
}

fn openai(args: &Runtime) -> anyhow::Result<OpenAiExecutor> {
    let Some(model) = &args.model else {
        return Err(Failure::usage("`--engine openai` needs `--model NAME`"));
    };
    let options = OpenAiOptions {
        base_url: args.base_url.clone(),
        model: model.clone(),
        key: args.key_env.as_deref().map(|name| secret("--key-env", name)).transpose()?,
        timeout: MODEL_TIMEOUT,
    };
    Ok(OpenAiExecutor::new(capabilities(args, "jurat-openai", model), options)?)
}

fn capabilities(args: &Runtime, family: &str, model: &str) -> Capabilities {
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
        Failure::usage(format!("`{flag}` names the variable `{name}`, which is not set"))
    })?;
    Ok(Secret::new(value))
}
