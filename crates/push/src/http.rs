//! HTTP/1.1 requests: a connection for each.

use std::io;
use std::time::Duration;

use bytes::Bytes;
use http_body_util::{BodyExt, Full, Limited};
use hyper::client::conn::http1;
use hyper::header::{CONTENT_ENCODING, CONTENT_TYPE, HOST, USER_AGENT};
use hyper::{HeaderMap, Method, Request};
use hyper_util::rt::TokioIo;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use tokio::runtime::{Builder, Runtime};

use crate::endpoint::Endpoint;
use crate::message::{Answer, Failure, Message};

/// The time in which a request must be answered, from the lookup of the host on.
const TIMEOUT: Duration = Duration::from_secs(10);

/// Bytes of an answer that are read.
const MAX_ANSWER: usize = 64 << 10;

const AGENT: &str = concat!("heapline/", env!("CARGO_PKG_VERSION"));

/// A client of a server.
pub(crate) struct Client {
    endpoint: Endpoint,
    /// Taken when the client is dropped.
    runtime: Option<Runtime>,
    #[cfg(feature = "tls")]
    tls: Option<crate::tls::Connector>,
}

impl Client {
    pub(crate) fn new(endpoint: Endpoint) -> io::Result<Self> {
        #[cfg(feature = "tls")]
        let tls = endpoint.is_tls.then(crate::tls::Connector::new);
        Ok(Self {
            #[cfg(feature = "tls")]
            tls: tls.transpose()?,
            runtime: Some(Builder::new_current_thread().enable_all().build()?),
            endpoint,
        })
    }

    pub(crate) fn endpoint(&self) -> &Endpoint {
        &self.endpoint
    }

    /// Sends a request and waits for its answer.
    pub(crate) fn post(&self, message: &Message) -> Result<Answer, Failure> {
        let runtime = self.runtime.as_ref();
        let runtime = runtime.unwrap_or_else(|| unreachable!("taken when dropped"));
        let answered = async { tokio::time::timeout(TIMEOUT, self.exchange(message)).await };
        match runtime.block_on(answered) {
            Ok(Ok(answer)) => Ok(answer),
            Ok(Err(error)) => Err(failure(&*error)),
            Err(_) => Err(Failure::temporary(format!(
                "no answer within {} s",
                TIMEOUT.as_secs()
            ))),
        }
    }

    async fn exchange(&self, message: &Message) -> Result<Answer, Error> {
        let endpoint = &self.endpoint;
        let stream = TcpStream::connect((endpoint.host(), endpoint.port())).await?;
        let _ = stream.set_nodelay(true);
        #[cfg(feature = "tls")]
        if let Some(tls) = &self.tls {
            let stream = tls.connect(endpoint.host(), stream).await?;
            return self.request(stream, message).await;
        }
        self.request(stream, message).await
    }

    async fn request(
        &self,
        stream: impl AsyncRead + AsyncWrite + Send + Unpin + 'static,
        message: &Message,
    ) -> Result<Answer, Error> {
        let (mut sender, connection) = http1::handshake(TokioIo::new(stream)).await?;
        // It ends with the request; what goes wrong is told by that.
        let connection = tokio::spawn(connection);
        let endpoint = &self.endpoint;
        let mut request = Request::builder()
            .method(Method::POST)
            .uri(endpoint.target(&message.path))
            .header(HOST, endpoint.authority.as_str())
            .header(USER_AGENT, AGENT)
            .header(CONTENT_TYPE, message.content_type);
        if message.is_compressed {
            request = request.header(CONTENT_ENCODING, "gzip");
        }
        if let Some(headers) = request.headers_mut() {
            add(headers, &endpoint.headers.0);
        }
        let request = request.body(Full::new(message.body.clone()))?;
        let (answer, body) = sender.send_request(request).await?.into_parts();
        let body = Limited::new(body, MAX_ANSWER).collect().await;
        connection.abort();
        Ok(Answer {
            status: answer.status,
            headers: answer.headers,
            // The text of an error may be long; the status is all that is needed.
            body: match body {
                Ok(body) => body.to_bytes(),
                Err(_) if !answer.status.is_success() => Bytes::new(),
                Err(error) => return Err(error),
            },
        })
    }
}

impl Drop for Client {
    fn drop(&mut self) {
        // The lookup of a host cannot be cancelled, and is not waited for.
        if let Some(runtime) = self.runtime.take() {
            runtime.shutdown_background();
        }
    }
}

type Error = Box<dyn std::error::Error + Send + Sync>;

fn add(headers: &mut HeaderMap, more: &HeaderMap) {
    for (name, value) in more {
        headers.insert(name, value.clone());
    }
}

/// An error of the connection. Answers that are not HTTP, and certificates that are not trusted, stay so.
fn failure(error: &(dyn std::error::Error + 'static)) -> Failure {
    let reason = described(error);
    let is_parse = |error: &hyper::Error| error.is_parse();
    let is_invalid = |error: &io::Error| error.kind() == io::ErrorKind::InvalidData;
    if error.downcast_ref().is_some_and(is_parse) || error.downcast_ref().is_some_and(is_invalid) {
        Failure::Permanent { reason }
    } else {
        Failure::temporary(reason)
    }
}

/// An error with its causes, each of which says what the ones before do not.
fn described(error: &(dyn std::error::Error + 'static)) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        let more = error.to_string();
        if !text.contains(&more) {
            text = format!("{text}: {more}");
        }
        cause = error.source();
    }
    text
}
