//! Builds the engine of this process from the state folder.

use std::sync::Arc;

use anyhow::{Context as _, bail};
use jurat_engine::{
    AccountSettings, ConsensusProfiles, Engine, EngineLimits, EngineParts, JudgesConfig,
    PaymentSettings, PeerParts, SystemClock, WebhookSettings,
};
use jurat_guard::{
    client::OutboundClient,
    mail::{FolderMailer, Mailer, SmtpMailer},
    sandbox::Sandbox,
};
use jurat_mesh::{Mesh, MeshError, MeshLimits, MeshSettings};
use jurat_store::{StoreError, StoreLocation};

use crate::{
    config::{self, CliConfig, node::NodeEndpoint, payments::payments},
    failure::CliFailure,
    state::{StateFolder, store_name},
};

/// The settings for accounts and mail.
fn accounts(config: &CliConfig) -> anyhow::Result<AccountSettings> {
    let terms = &config.accounts;
    let mailer: Arc<dyn Mailer> = match (&terms.smtp_url, &terms.from) {
        (Some(url), Some(from)) => Arc::new(SmtpMailer::new(url, from).context("`mail.smtp_url`")?),
        (Some(_), None) => {
            return Err(CliFailure::usage(
                "`mail.smtp_url` needs `mail.from`, the sender".to_owned(),
            ));
        }
        (None, _) => Arc::new(FolderMailer::new(config.state_dir.join("mail"))),
    };
    Ok(AccountSettings {
        mailer,
        is_open: terms.is_open,
        grant_micros: terms.grant_micros,
        public_url: terms.public_url.clone(),
    })
}

/// The settings of an engine.
pub(crate) struct EngineSettings {
    pub(crate) limits: EngineLimits,
    pub(crate) judges: JudgesConfig,
    pub(crate) accounts: AccountSettings,
    pub(crate) profiles: ConsensusProfiles,
    pub(crate) webhooks: WebhookSettings,
    pub(crate) payments: Option<PaymentSettings>,
    /// The endpoint for other nodes. Only a server has one.
    pub(crate) peers: Option<PeerParts>,
}

impl EngineSettings {
    pub(crate) fn of(config: &CliConfig) -> anyhow::Result<Self> {
        let (limits, judges) = (config.limits, config.judges.clone());
        let payments = payments(&config.settings).map_err(CliFailure::usage)?;
        let profiles = config.profiles.clone();
        Ok(Self {
            limits,
            judges,
            accounts: accounts(config)?,
            profiles,
            payments,
            webhooks: config.webhooks.clone(),
            peers: None,
        })
    }
}

pub(crate) async fn engine(
    state: &StateFolder,
    store: &StoreLocation,
    settings: EngineSettings,
) -> anyhow::Result<Engine> {
    let EngineSettings { limits, judges, accounts, profiles, webhooks, payments, peers } = settings;
    let node_key = state.node_key()?;
    let opened = jurat_store::open(store).await;
    let parts = EngineParts {
        store: opened.map_err(|error| unopened(store, error))?,
        clock: Arc::new(SystemClock),
        client: OutboundClient::new(jurat_guard::client::ClientLimits::default())?,
        bounded: Sandbox::default(),
        node_key,
        secrets: Arc::new(config::variable),
        limits,
        judges,
        accounts,
        payments,
        peers,
        profiles,
        webhooks,
        failpoints: config::points(),
    };
    let engine = Engine::new(parts);
    ensure_admin(state, store, &engine).await?;
    Ok(engine)
}

/// Opens the endpoint for other nodes, under the key of the state folder.
pub(crate) async fn open_endpoint(
    state: &StateFolder,
    endpoint: &NodeEndpoint,
) -> anyhow::Result<PeerParts> {
    let NodeEndpoint { listen, relays, finds_local, peers } = endpoint.clone();
    let settings = MeshSettings {
        seed: state.node_seed()?,
        listen,
        relays,
        find_local: finds_local,
        limits: MeshLimits::default(),
    };
    let (mesh, requests) = match Mesh::bind(settings).await {
        Ok(bound) => bound,
        Err(MeshError::Bind { listen, reason }) => {
            let listen: Vec<String> = listen.iter().map(ToString::to_string).collect();
            bail!(
                "cannot listen for other nodes on {}: {reason}; stop the program that uses the address, or choose another with `--node-listen`",
                listen.join(" and ")
            )
        }
        Err(error) => return Err(error).context("cannot listen for other nodes"),
    };
    let address = mesh.address();
    let direct: Vec<String> = address.direct.iter().map(ToString::to_string).collect();
    tracing::info!(
        node.id = address.id,
        node.addresses = direct.join(","),
        node.relays = address.relays.join(","),
        "listening for other nodes"
    );
    Ok(PeerParts { mesh, requests, settings: peers })
}

/// Admits the key of the state folder: the owner of a SQLite file owns its installation. A shared
/// database has operators already, and a node that joins must not add another.
async fn ensure_admin(
    state: &StateFolder,
    store: &StoreLocation,
    engine: &Engine,
) -> anyhow::Result<()> {
    let is_shared = matches!(store, StoreLocation::Postgres { .. });
    if is_shared && engine.key_has_admin().await? {
        if state.existing_admin_key()?.is_none() {
            tracing::info!(
                "the database already has an operator's key, so `admin.key` was not written; `jurat serve --new-admin-key` writes one"
            );
        }
        return Ok(());
    }
    Ok(engine.key_ensure_admin(&state.admin_key()?).await?)
}

/// Creates another key for an operator who has lost all of them.
pub(crate) async fn new_admin(state: &StateFolder, engine: &Engine) -> anyhow::Result<()> {
    let key = StateFolder::fresh_key();
    engine.key_ensure_admin(&key).await?;
    Ok(state.replace_admin_key(&key.reveal())?)
}

/// An error that names the store, with advice if its role may not create the tables.
fn unopened(store: &StoreLocation, error: StoreError) -> anyhow::Error {
    let name = store_name(store);
    let text = match store {
        StoreLocation::Postgres { migrate_url: None, .. } if error.is_denied() => format!(
            "cannot open the store `{name}`, because its role may not create the tables; start `jurat serve` with `--migrate-url`, the URL of the role that owns them"
        ),
        StoreLocation::Memory | StoreLocation::File(_) | StoreLocation::Postgres { .. } => {
            format!("cannot open the store `{name}`")
        }
    };
    anyhow::Error::new(error).context(text)
}
