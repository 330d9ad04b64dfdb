//! The minimal handler of a body: sends it back.

use std::net::Ipv4Addr;

use anyhow::{Context as _, Result};
use axum::Router;
use axum::routing::post;
use bytes::Bytes;
use http::header::CONTENT_TYPE;
use jurat_bench_load::{announce, until_parent_goes};
use tokio::net::TcpListener;

pub(crate) async fn serve() -> Result<()> {
    let echo = async |body: Bytes| ([(CONTENT_TYPE, "application/json")], body);
    let router = Router::new().route("/verify", post(echo));
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await?;
    announce(listener.local_addr()?.port(), "");
    tokio::select! {
        ended = axum::serve(listener, router).into_future() => ended.context("cannot serve"),
        () = until_parent_goes() => Ok(()),
    }
}
