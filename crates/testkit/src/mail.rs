//! Mail in tests: a mailbox that keeps it, and a server that accepts it over SMTP.

use std::{net::SocketAddr, time::Duration};

use jurat_guard::mail::{Mail, MailFuture, Mailer};
use parking_lot::Mutex;
use tokio::{
    io::{AsyncBufReadExt as _, AsyncWriteExt as _, BufReader},
    net::{TcpListener, TcpStream},
    sync::{Notify, mpsc},
};

/// A busy machine may be slow; a test that hangs ends here.
const TIMEOUT: Duration = Duration::from_secs(20);

/// Keeps mail until a test reads it.
#[derive(Debug, Default)]
pub struct Outbox {
    mails: Mutex<Vec<Mail>>,
    came: Notify,
}

impl Mailer for Outbox {
    fn send<'a>(&'a self, mail: &'a Mail) -> MailFuture<'a> {
        self.mails.lock().push(mail.clone());
        self.came.notify_one();
        Box::pin(async { Ok(()) })
    }
}

impl Outbox {
    /// The recipients of unread mail.
    pub fn addressees(&self) -> Vec<String> {
        let mails = self.mails.lock();
        mails.iter().map(|mail| mail.to.clone()).collect()
    }

    /// Waits for the next mail to the address and removes it, with all mail before it.
    pub async fn next_to(&self, address: &str) -> Mail {
        loop {
            let came = self.came.notified();
            let mut mails = std::mem::take(&mut *self.mails.lock());
            if let Some(at) = mails.iter().position(|mail| mail.to.eq_ignore_ascii_case(address)) {
                return mails.swap_remove(at);
            }
            // A missing mail fails the test that waits for it.
            tokio::time::timeout(TIMEOUT, came).await.unwrap();
        }
    }

    /// The code in the next mail to the address.
    pub async fn code_to(&self, address: &str) -> String {
        code_in(&self.next_to(address).await.text)
    }
}

/// The first ten consecutive digits.
#[track_caller]
pub fn code_in(text: &str) -> String {
    let is_code = |word: &&str| word.len() == 10 && word.bytes().all(|b| b.is_ascii_digit());
    text.split_whitespace().find(is_code).unwrap().to_owned()
}

/// A mail server that accepts everything, over a socket.
#[derive(Debug)]
pub struct FakeSmtp {
    address: SocketAddr,
    mails: tokio::sync::Mutex<mpsc::UnboundedReceiver<String>>,
}

impl FakeSmtp {
    pub async fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let (sender, mails) = mpsc::unbounded_channel();
        #[expect(clippy::disallowed_methods, reason = "a fake ends with its test")]
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                if let Some(mail) = converse(stream).await {
                    drop(sender.send(mail));
                }
            }
        });
        Self { address, mails: tokio::sync::Mutex::new(mails) }
    }

    pub fn url(&self) -> String {
        format!("smtp://{}", self.address)
    }

    /// Waits for the next mail: its sender, its recipient, and its lines.
    pub async fn next(&self) -> String {
        self.mails.lock().await.recv().await.unwrap()
    }
}

async fn converse(stream: TcpStream) -> Option<String> {
    let (reader, mut writer) = stream.into_split();
    let mut lines = BufReader::new(reader).lines();
    let mut mail = String::new();
    writer.write_all(b"220 fake ESMTP\r\n").await.ok()?;
    let mut is_body = false;
    while let Ok(Some(line)) = lines.next_line().await {
        let reply = match line.as_str() {
            "." if is_body => {
                is_body = false;
                "250 taken\r\n"
            }
            "DATA" if !is_body => {
                is_body = true;
                "354 go on\r\n"
            }
            "QUIT" if !is_body => {
                drop(writer.write_all(b"221 bye\r\n").await);
                break;
            }
            text => {
                if is_body || text.starts_with("MAIL") || text.starts_with("RCPT") {
                    mail.push_str(text);
                    mail.push('\n');
                }
                if is_body {
                    continue;
                }
                "250 fine\r\n"
            }
        };
        writer.write_all(reply.as_bytes()).await.ok()?;
    }
    (!mail.is_empty()).then_some(mail)
}
