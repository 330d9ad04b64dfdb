//! The typed client on the router of a test application.

use std::{convert::Infallible, net::IpAddr, time::Duration};

use axum::{
    Router,
    body::{Body, to_bytes},
};
use bytes::Bytes;
use http::{Request, Response};
use jurat_client::{Client, ReplyBody, Transport};
use tower::ServiceExt as _;

use crate::{
    app::{TestCaller, TestReply},
    described,
};

/// Carries requests to the router in the same process. Each reply must be as the OpenAPI document
/// says.
#[derive(Debug, Clone)]
pub struct RouterTransport {
    pub(crate) router: Router,
    pub(crate) address: Option<IpAddr>,
}

/// A body that has arrived.
#[derive(Debug)]
pub struct WholeBody(Option<Bytes>);

impl ReplyBody for WholeBody {
    type Error = Infallible;

    async fn next(&mut self) -> Result<Option<Bytes>, Infallible> {
        Ok(self.0.take())
    }
}

impl Transport for RouterTransport {
    type Body = WholeBody;
    type Error = Infallible;

    fn address(&self, path: &str) -> String {
        path.to_owned()
    }

    async fn send(
        &self,
        request: Request<Bytes>,
        _: Duration,
    ) -> Result<Response<WholeBody>, Infallible> {
        let mut request = request.map(Body::from);
        if let Some(address) = self.address {
            request.extensions_mut().insert(jurat_server::PeerAddress(address));
        }
        let (method, path) = (request.method().to_string(), request.uri().to_string());
        let response = self.router.clone().oneshot(request).await?;
        let (parts, body) = response.into_parts();
        let body = to_bytes(body, usize::MAX).await.unwrap();
        let (status, headers) = (parts.status, parts.headers.clone());
        described::check(&method, &path, &TestReply { status, headers, body: body.to_vec() });
        Ok(Response::from_parts(parts, WholeBody(Some(body))))
    }
}

impl TestCaller<'_> {
    /// A typed client with the key and the address of this caller.
    pub fn client(&self) -> Client<RouterTransport> {
        let mut client = Client::new(self.transport(), self.key().unwrap_or("none")).unwrap();
        if self.key().is_none() {
            client.forget_key();
        }
        client
    }
}
