//! Sends mail to an SMTP server or into a folder.

use std::{
    fmt,
    future::Future,
    io,
    path::{Path, PathBuf},
    pin::Pin,
    time::{Duration, SystemTime},
};

use lettre::{
    AsyncSmtpTransport, AsyncTransport as _, Message, Tokio1Executor,
    message::{Mailbox, header::ContentType},
};
use tokio::{fs, io::AsyncWriteExt as _};

/// The timeout for one mail.
const TIMEOUT: Duration = Duration::from_secs(20);

/// A plain-text mail.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Mail {
    /// Unique, made of letters, digits and hyphens.
    pub id: String,
    pub to: String,
    pub subject: String,
    pub text: String,
}

/// Why a mail could not be sent.
#[derive(Debug, thiserror::Error)]
pub enum MailError {
    #[error("mail cannot be sent to the address `{0}`")]
    Address(String),
    #[error("the mail cannot be composed")]
    Form(#[source] lettre::error::Error),
    #[error("the mail server rejected the mail")]
    Server(#[source] lettre::transport::smtp::Error),
    #[error("the mail server took too long")]
    Late,
    #[error("the mail cannot be written to `{}`", path.display())]
    File { path: PathBuf, source: std::io::Error },
}

/// The pending result of sending a mail.
pub type MailFuture<'a> = Pin<Box<dyn Future<Output = Result<(), MailError>> + Send + 'a>>;

/// Sends mail.
pub trait Mailer: fmt::Debug + Send + Sync {
    fn send<'a>(&'a self, mail: &'a Mail) -> MailFuture<'a>;
}

/// Discards mail.
#[derive(Debug, Clone, Copy, Default)]
pub struct NullMailer;

impl Mailer for NullMailer {
    fn send<'a>(&'a self, _: &'a Mail) -> MailFuture<'a> {
        Box::pin(async { Ok(()) })
    }
}

/// How many mails a folder keeps, and for how long.
const MOST_MAILS: usize = 1_000;
const KEPT: Duration = Duration::from_hours(30 * 24);

/// Writes each mail to a file that only the user of this process can read. Each new mail removes
/// old ones.
#[derive(Debug, Clone)]
pub struct FolderMailer {
    dir: PathBuf,
    most: usize,
}

impl FolderMailer {
    /// The first mail creates the folder.
    pub fn new(dir: PathBuf) -> Self {
        Self { dir, most: MOST_MAILS }
    }

    /// Limits the number of mails in the folder.
    #[must_use]
    pub fn with_most(self, most: usize) -> Self {
        Self { most, ..self }
    }

    /// Removes mails that are too old, and the oldest beyond the limit. Only files named like a
    /// mail are considered.
    async fn prune(&self, newest: &Path) -> io::Result<()> {
        let now = fs::metadata(newest).await?.modified()?;
        let mut mails = Vec::new();
        let mut entries = fs::read_dir(&self.dir).await?;
        while let Some(entry) = entries.next_entry().await? {
            let path = entry.path();
            let is_mail = path.extension().is_some_and(|end| end == "txt") && path != newest;
            // Another process may have removed it meanwhile.
            if let (true, Ok(known)) = (is_mail, entry.metadata().await)
                && known.is_file()
            {
                mails.push((known.modified()?, path));
            }
        }
        mails.sort_by(|(one, _), (other, _)| other.cmp(one));
        let is_old = |at: SystemTime| now.duration_since(at).is_ok_and(|age| KEPT < age);
        for (index, (at, path)) in mails.into_iter().enumerate() {
            if self.most <= index + 1 || is_old(at) {
                match fs::remove_file(&path).await {
                    Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
                    Ok(()) | Err(_) => {}
                }
            }
        }
        Ok(())
    }
}

impl Mailer for FolderMailer {
    fn send<'a>(&'a self, mail: &'a Mail) -> MailFuture<'a> {
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
            written.await.map_err(|source| MailError::File { path: path.clone(), source })?;
            // The mail is written. The next mail retries the removal of files that cannot be
            // removed now.
            drop(self.prune(&path).await);
            Ok(())
        })
    }
}

/// Sends mail through an SMTP server.
#[derive(Debug, Clone)]
pub struct SmtpMailer {
    transport: AsyncSmtpTransport<Tokio1Executor>,
    from: Mailbox,
}

impl SmtpMailer {
    /// `url` is `smtps://user:password@host`, or `smtp://host:port` with `?tls=required` for
    /// STARTTLS.
    pub fn new(url: &str, from: &str) -> Result<Self, MailError> {
        let transport = AsyncSmtpTransport::<Tokio1Executor>::from_url(url);
        let transport = transport.map_err(MailError::Server)?.timeout(Some(TIMEOUT)).build();
        Ok(Self { transport, from: mailbox(from)? })
    }
}

fn mailbox(address: &str) -> Result<Mailbox, MailError> {
    address.parse().map_err(|_| MailError::Address(address.to_owned()))
}

impl Mailer for SmtpMailer {
    fn send<'a>(&'a self, mail: &'a Mail) -> MailFuture<'a> {
        Box::pin(async move {
            let message = Message::builder()
                .from(self.from.clone())
                .to(mailbox(&mail.to)?)
                .subject(&mail.subject)
                .header(ContentType::TEXT_PLAIN)
                .body(mail.text.clone())
                .map_err(MailError::Form)?;
            let sent = tokio::time::timeout(TIMEOUT, self.transport.send(message)).await;
            match sent {
                Ok(sent) => sent.map(drop).map_err(MailError::Server),
                Err(_elapsed) => Err(MailError::Late),
            }
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn mail(id: &str) -> Mail {
        Mail { id: id.to_owned(), to: "a@b.c".into(), subject: "x".into(), text: "y".into() }
    }

    fn set_age(path: &Path, age: Duration) {
        let file = std::fs::File::options().write(true).open(path).unwrap();
        let now = file.metadata().unwrap().modified().unwrap();
        file.set_modified(now - age).unwrap();
    }

    #[tokio::test]
    async fn old_and_surplus_mails_are_removed() {
        let dir = tempfile::tempdir().unwrap();
        let folder = FolderMailer::new(dir.path().to_owned()).with_most(3);
        let path = |id: &str| dir.path().join(format!("{id}.txt"));
        std::fs::write(dir.path().join("notes.md"), "kept").unwrap();
        for (id, days) in [("a", 31), ("b", 3), ("c", 2), ("d", 1)] {
            folder.send(&mail(id)).await.unwrap();
            set_age(&path(id), Duration::from_hours(days * 24));
        }
        folder.send(&mail("e")).await.unwrap();
        let there = |id: &str| path(id).exists();
        assert!(!there("a"), "it is too old");
        assert!(!there("b"), "there are newer ones");
        assert!(there("c") && there("d") && there("e"));
        assert!(dir.path().join("notes.md").exists(), "it is no mail");
    }
}
