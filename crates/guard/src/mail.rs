//! Mail that leaves the installation: to a server that takes it, or into a folder.

use std::{fmt, future::Future, path::PathBuf, pin::Pin, time::Duration};

use lettre::{
    AsyncSmtpTransport, AsyncTransport as _, Message, Tokio1Executor,
    message::{Mailbox, header::ContentType},
};
use tokio::{fs, io::AsyncWriteExt as _};

/// How long a server may take for one mail.
const PATIENCE: Duration = Duration::from_secs(20);

/// A mail of plain text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Mail {
    /// Of letters, digits and hyphens; nobody else has it.
    pub id: String,
    pub to: String,
    pub subject: String,
    pub text: String,
}

#[derive(Debug, thiserror::Error)]
pub enum MailError {
    #[error("the address `{0}` cannot be written to")]
    Address(String),
    #[error("the mail cannot be put together")]
    Form(#[source] lettre::error::Error),
    #[error("the mail server does not take the mail")]
    Server(#[source] lettre::transport::smtp::Error),
    #[error("the mail server took too long")]
    Late,
    #[error("the mail cannot be written to `{}`", path.display())]
    File { path: PathBuf, source: std::io::Error },
}

pub type Sending<'a> = Pin<Box<dyn Future<Output = Result<(), MailError>> + Send + 'a>>;

/// Whatever takes mail.
pub trait Mailer: fmt::Debug + Send + Sync {
    fn send<'a>(&'a self, mail: &'a Mail) -> Sending<'a>;
}

/// Takes mail and does nothing with it.
#[derive(Debug, Clone, Copy, Default)]
pub struct Nowhere;

impl Mailer for Nowhere {
    fn send<'a>(&'a self, _: &'a Mail) -> Sending<'a> {
        Box::pin(async { Ok(()) })
    }
}

/// Writes each mail to a file of its own, which only the user of this process reads.
#[derive(Debug, Clone)]
pub struct Folder {
    dir: PathBuf,
}

impl Folder {
    /// The folder is made with the first mail.
    pub fn new(dir: PathBuf) -> Self {
        Self { dir }
    }
}

impl Mailer for Folder {
    fn send<'a>(&'a self, mail: &'a Mail) -> Sending<'a> {
        Box::pin(async move {
            let path = self.dir.join(format!("{}.txt", mail.id));
            let text = format!("To: {}\nSubject: {}\n\n{}\n", mail.to, mail.subject, mail.text);
            let written = async {
                fs::DirBuilder::new().recursive(true).mode(0o700).create(&self.dir).await?;
                let mut options = fs::OpenOptions::new();
                let mut file = options.write(true).create_new(true).mode(0o600).open(&path).await?;
                file.write_all(text.as_bytes()).await?;
                file.sync_all().await
            };
            written.await.map_err(|source| MailError::File { path: path.clone(), source })
        })
    }
}

/// Hands mail to a server.
#[derive(Debug, Clone)]
pub struct Smtp {
    transport: AsyncSmtpTransport<Tokio1Executor>,
    from: Mailbox,
}

impl Smtp {
    /// `url` is `smtps://user:password@host`, or `smtp://host:port` with `?tls=required` for TLS
    /// that begins later.
    pub fn new(url: &str, from: &str) -> Result<Self, MailError> {
        let transport = AsyncSmtpTransport::<Tokio1Executor>::from_url(url);
        let transport = transport.map_err(MailError::Server)?.timeout(Some(PATIENCE)).build();
        Ok(Self { transport, from: mailbox(from)? })
    }
}

fn mailbox(address: &str) -> Result<Mailbox, MailError> {
    address.parse().map_err(|_| MailError::Address(address.to_owned()))
}

impl Mailer for Smtp {
    fn send<'a>(&'a self, mail: &'a Mail) -> Sending<'a> {
        Box::pin(async move {
            let message = Message::builder()
                .from(self.from.clone())
                .to(mailbox(&mail.to)?)
                .subject(&mail.subject)
                .header(ContentType::TEXT_PLAIN)
                .body(mail.text.clone())
                .map_err(MailError::Form)?;
            let sent = tokio::time::timeout(PATIENCE, self.transport.send(message)).await;
            match sent {
                Ok(sent) => sent.map(drop).map_err(MailError::Server),
                Err(_elapsed) => Err(MailError::Late),
            }
        })
    }
}
