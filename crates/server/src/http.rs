//! HTTP: from connections to requests, and from answers to responses.

use std::convert::Infallible;
use std::io::{self, Write as _};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, TcpListener};
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use flate2::Compression;
use flate2::write::GzEncoder;
use heapline_engine::Request;
use http_body_util::{Either, Full};
use hyper::body::Incoming;
use hyper::header::{
    ACCEPT_ENCODING, ALLOW, CACHE_CONTROL, CONNECTION, CONTENT_DISPOSITION, CONTENT_ENCODING,
    CONTENT_SECURITY_POLICY, CONTENT_TYPE, HeaderName, HeaderValue, REFERRER_POLICY, VARY,
    X_CONTENT_TYPE_OPTIONS,
};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::{HeaderMap, Method, Response, StatusCode};
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::net::TcpStream;
use tokio::sync::{OwnedSemaphorePermit, Semaphore, watch};
use tokio_io_timeout::TimeoutStream;

use crate::assets;
use crate::dropped;
use crate::error::ApiError;
use crate::events::EventStream;
use crate::files::FileRequest;
use crate::fleet::{Fleet, ServedFleet};
use crate::guard::Guard;
use crate::loader::Loading;
use crate::peer::{self, Peer};
use crate::state::State;
use crate::trace::Subjects;

/// The first port that is tried, and the last.
const PORTS: std::ops::RangeInclusive<u16> = 8080..=9000;

/// Connections at the same time; a browser has six. More have to wait.
const CONNECTIONS: usize = 256;

/// The time limit for a client to send the head of a request.
const READ_TIMEOUT: Duration = Duration::from_secs(15);

/// The time limit for a client that reads nothing of its response.
const WRITE_TIMEOUT: Duration = Duration::from_secs(30);

/// The time for which pages can still ask why the traces could not be loaded.
const FAREWELL: Duration = Duration::from_secs(3);

/// The largest head of a request. Queries are in it.
const LARGEST_HEAD: usize = 64 << 10;

const JSON: &str = "application/json";

/// The header with the epoch of an answer, or the one that is asked about.
const EPOCH: &str = "heapline-epoch";

/// Less is not worth compressing.
const SMALL: usize = 1 << 10;

/// Content security policy: the page can only run and load what this server sends.
const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; \
    img-src 'self' data:; connect-src 'self'; font-src 'self'; base-uri 'none'; \
    form-action 'none'; frame-ancestors 'none'";

/// A server that has its port, and does not serve yet.
#[derive(Debug)]
pub struct Server {
    listener: TcpListener,
    address: SocketAddr,
    guard: Guard,
}

impl Server {
    /// Takes a port: the given one, or the first free one from 8080 on.
    ///
    /// Requests of other users and of other machines need a random token, which is part of the [`url`](Self::url).
    pub fn bind(ip: IpAddr, port: Option<u16>) -> io::Result<Self> {
        let listener = match port {
            Some(port) => TcpListener::bind((ip, port))?,
            None => first_free(ip)?,
        };
        listener.set_nonblocking(true)?;
        Ok(Self {
            address: listener.local_addr()?,
            listener,
            guard: Guard::new(ip)?,
        })
    }

    /// Answers all users of this machine without a token. No effect if other machines can connect.
    #[must_use]
    pub fn without_token(self) -> Self {
        Self {
            guard: self.guard.without_token(),
            ..self
        }
    }

    /// The address that it listens on.
    #[must_use]
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// The address to open in a browser. It is a secret.
    #[must_use]
    pub fn url(&self) -> String {
        match self.guard.token() {
            // What follows # is not sent to servers, nor does it get into their logs.
            Some(token) => format!("http://{}/#token={token}", self.address),
            None => format!("http://{}/", self.address),
        }
    }

    /// The address to open in a browser of this user on this machine. Where possible it has no token: other users can
    /// see the command lines of browsers.
    #[must_use]
    pub fn local_url(&self) -> String {
        let ip = match self.address.ip() {
            ip if ip.is_loopback() => ip,
            IpAddr::V4(ip) if ip.is_unspecified() => Ipv4Addr::LOCALHOST.into(),
            IpAddr::V6(ip) if ip.is_unspecified() => Ipv6Addr::LOCALHOST.into(),
            _ => return self.url(),
        };
        if !peer::IS_KNOWN {
            return self.url();
        }
        format!("http://{}/", SocketAddr::new(ip, self.address.port()))
    }

    /// Serves at once, while the traces are being loaded, until the process ends. Fails a moment after the traces
    /// could not be loaded: pages that are open show why by then.
    pub fn serve(self, subjects: Subjects) -> Result<Infallible, ServeError> {
        let state = State::start(subjects)?;
        let loading = state.loading.clone();
        self.run(Shown::Files(state), load_failure(loading))
    }

    /// Serves the reports about a dataset, until the process ends.
    pub fn serve_fleet(self, fleet: Fleet) -> Result<Infallible, ServeError> {
        let fleet = Arc::new(ServedFleet::new(fleet));
        self.run(Shown::Fleet(fleet), std::future::pending())
    }

    /// Serves until there is a reason to end.
    fn run(
        self,
        shown: Shown,
        reason: impl Future<Output = String>,
    ) -> Result<Infallible, ServeError> {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()?;
        runtime.block_on(async move {
            let listener = tokio::net::TcpListener::from_std(self.listener)?;
            tokio::spawn(accept(listener, shown, Arc::new(self.guard)));
            Err(ServeError::Load(reason.await))
        })
    }
}

/// The subject of a server's reports.
#[derive(Clone)]
enum Shown {
    Files(Arc<State>),
    Fleet(Arc<ServedFleet>),
}

/// Accepts connections as long as the process runs.
async fn accept(listener: tokio::net::TcpListener, shown: Shown, guard: Arc<Guard>) {
    let places = Arc::new(Semaphore::new(CONNECTIONS));
    // The semaphore is never closed.
    while let Ok(place) = Arc::clone(&places).acquire_owned().await {
        let Ok((stream, _)) = listener.accept().await else {
            // The client is gone again, or there are no descriptors left.
            tokio::time::sleep(Duration::from_millis(50)).await;
            continue;
        };
        let (shown, guard) = (shown.clone(), Arc::clone(&guard));
        tokio::spawn(async move {
            connection(stream, shown, guard).await;
            drop(place);
        });
    }
}

/// The reason why a server ends.
#[derive(Debug, thiserror::Error)]
pub enum ServeError {
    /// The traces could not be loaded. The text is for people.
    #[error("{0}")]
    Load(String),
    /// The server itself failed.
    #[error(transparent)]
    Io(#[from] io::Error),
}

/// Waits until the traces could not be loaded, and then until pages know.
async fn load_failure(mut loading: watch::Receiver<Loading>) -> String {
    let is_failed = |loading: &Loading| matches!(loading, Loading::Failed(_));
    let problem = match loading.wait_for(is_failed).await.as_deref() {
        Ok(Loading::Failed(problem)) => Some(problem.clone()),
        // They are loaded, and the loader has ended.
        _ => None,
    };
    match problem {
        Some(problem) => {
            tokio::time::sleep(FAREWELL).await;
            problem
        }
        None => std::future::pending().await,
    }
}

fn first_free(ip: IpAddr) -> io::Result<TcpListener> {
    let mut result = Err(io::Error::from(io::ErrorKind::AddrInUse));
    for port in PORTS {
        result = TcpListener::bind((ip, port));
        match &result {
            Err(error) if error.kind() == io::ErrorKind::AddrInUse => {}
            _ => break,
        }
    }
    result
}

/// Answers the requests of a connection.
async fn connection(stream: TcpStream, shown: Shown, guard: Arc<Guard>) {
    // Answers are written whole.
    let _ = stream.set_nodelay(true);
    let peer = Arc::new(Peer::new(&stream));
    let mut stream = TimeoutStream::new(stream);
    stream.set_write_timeout(Some(WRITE_TIMEOUT));
    let service = service_fn(|request: hyper::Request<Incoming>| {
        let (shown, guard, peer) = (shown.clone(), Arc::clone(&guard), Arc::clone(&peer));
        async move { Ok::<_, Infallible>(respond(request, &shown, &guard, &peer).await) }
    });
    let served = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(READ_TIMEOUT)
        .max_buf_size(LARGEST_HEAD)
        .serve_connection(TokioIo::new(Box::pin(stream)), service);
    // Clients that go away or talk nonsense are no concern of ours.
    let _ = served.await;
}

/// A body and what it is.
struct Content {
    status: StatusCode,
    kind: &'static str,
    body: Bytes,
    is_zipped: bool,
    /// The origin of the body.
    origin: Option<Origin>,
    /// The name by which browsers save it.
    file_name: Option<String>,
}

/// The trace that an answer is about, and the command that gives the same.
struct Origin {
    command: Option<String>,
    identity: Arc<str>,
    epoch: u64,
}

impl Content {
    fn new(kind: &'static str, body: Bytes) -> Self {
        Self {
            status: StatusCode::OK,
            kind,
            body,
            is_zipped: false,
            origin: None,
            file_name: None,
        }
    }
}

impl From<ApiError> for Content {
    fn from(error: ApiError) -> Self {
        Self {
            status: error.status(),
            ..Self::new(JSON, error.body().into())
        }
    }
}

async fn respond(
    request: hyper::Request<Incoming>,
    shown: &Shown,
    guard: &Guard,
    peer: &Peer,
) -> Response<Body> {
    let (request, body) = request.into_parts();
    let request = hyper::Request::from_parts(request, ());
    let (snapshot, path) = below_snapshot(request.uri().path());
    let query = request.uri().query().unwrap_or("");
    let report = path.strip_prefix("/api/v1/");
    // The only request that changes anything. Browsers send an origin with it, which the guard checks.
    let dropped_on = match shown {
        Shown::Files(state)
            if request.method() == Method::POST
                && snapshot.is_none()
                && report == Some("against") =>
        {
            Some(state)
        }
        _ => None,
    };
    let is_api = path.starts_with("/api/");
    let checked = guard
        .check(request.uri(), request.headers(), is_api, peer)
        .and_then(|()| {
            if dropped_on.is_some() {
                Ok(())
            } else {
                check_method(request.method())
            }
        });
    let result = match (checked, dropped_on, report, shown) {
        (Err(error), ..) => Err(error),
        (Ok(()), Some(state), ..) => dropped::compare(state, query, body)
            .await
            .map(|()| status(&state.status())),
        (Ok(()), None, None, _) => page(path),
        (Ok(()), None, Some(report), Shown::Fleet(fleet)) => fleet_api(report, query, fleet).await,
        (Ok(()), None, Some(report), Shown::Files(state)) => {
            match state.of_snapshot(snapshot.as_deref()) {
                Err(error) => Err(error),
                Ok(of_snapshot) if report == "events" && request.method() == Method::GET => {
                    let place = state.event_stream();
                    return match held_epoch(query).and_then(|hold| Ok((hold, place?))) {
                        Ok((hold, place)) => events(&of_snapshot, hold, place),
                        Err(error) => response(error.into()),
                    };
                }
                Ok(state) => api(report, query, &request, &state).await,
            }
        }
    };
    let content = result.unwrap_or_else(Content::from);
    response(compressed(content, request.headers()).await)
}

/// The heap snapshot that a path is about, and the path below it: `/snapshots/NAME/PATH`.
fn below_snapshot(path: &str) -> (Option<String>, &str) {
    let below = path.strip_prefix("/snapshots/");
    let Some((name, _)) = below.and_then(|below| below.split_once('/')) else {
        return (None, path);
    };
    // Browsers encode names so that this decodes them, too.
    let decoded = form_urlencoded::parse(name.as_bytes()).next();
    let decoded = decoded.map_or_else(String::new, |(name, _)| name.into_owned());
    let start = "/snapshots/".len() + name.len();
    (Some(decoded), &path[start..])
}

/// The body of a response: whole, or events as they come.
type Body = Either<Full<Bytes>, EventStream>;

fn check_method(method: &Method) -> Result<(), ApiError> {
    match *method {
        Method::GET | Method::HEAD => Ok(()),
        _ => Err(ApiError::new(
            StatusCode::METHOD_NOT_ALLOWED,
            "method_not_allowed",
            format!("{method} is not supported; use GET"),
        )),
    }
}

fn page(path: &str) -> Result<Content, ApiError> {
    if let Some(file) = assets::find(path) {
        return Ok(Content::new(file.kind, Bytes::from_static(file.bytes)));
    }
    match assets::missing_page() {
        Some(reason) if path == "/" => {
            let text = format!(
                "This heapline was built without its page: {reason}.\n\
                 The reports are there: /api/v1/summary, for example.\n"
            );
            Ok(Content {
                status: StatusCode::SERVICE_UNAVAILABLE,
                ..Content::new("text/plain; charset=utf-8", text.into())
            })
        }
        _ => Err(ApiError::new(
            StatusCode::NOT_FOUND,
            "not_found",
            "not found; the page is at /, the reports are below /api/v1/",
        )),
    }
}

/// The epoch that the client of an event stream wants to go on asking about.
fn held_epoch(query: &str) -> Result<Option<u64>, ApiError> {
    let mut hold = None;
    for (name, value) in form_urlencoded::parse(query.as_bytes()) {
        hold = match value.parse() {
            Ok(epoch) if name == "hold" => Some(epoch),
            _ => {
                return Err(ApiError::new(
                    StatusCode::BAD_REQUEST,
                    "bad_parameter",
                    format!("cannot use {name}={value}; expected hold=EPOCH"),
                ));
            }
        };
    }
    Ok(hold)
}

fn events(state: &Arc<State>, hold: Option<u64>, place: OwnedSemaphorePermit) -> Response<Body> {
    let content = Content::new("text/event-stream", Bytes::new());
    let (parts, _) = response(content).into_parts();
    Response::from_parts(parts, Either::Right(EventStream::start(state, hold, place)))
}

async fn api(
    report: &str,
    query: &str,
    request: &hyper::Request<()>,
    state: &State,
) -> Result<Content, ApiError> {
    if report == "status" {
        return Ok(status(&state.status()));
    }
    let epoch = request.headers().get(EPOCH);
    let epoch = epoch.and_then(|epoch| epoch.to_str().ok()?.parse().ok());
    if let Some(file) = FileRequest::parse(report, query) {
        let is_written = request.method() == Method::GET;
        let file = state.file(file?, epoch, is_written).await?;
        return Ok(Content {
            origin: Some(Origin {
                command: Some(file.command),
                identity: Arc::clone(file.session.identity()),
                epoch: file.session.epoch(),
            }),
            file_name: Some(file.name),
            ..Content::new("application/octet-stream", file.content.into())
        });
    }
    let pairs = form_urlencoded::parse(query.as_bytes());
    let request = Request::from_pairs(report, pairs)?;
    let answer = state.answer(request, epoch).await?;
    Ok(Content {
        origin: Some(Origin {
            command: answer.command.clone(),
            identity: Arc::clone(&answer.identity),
            epoch: answer.epoch,
        }),
        ..Content::new(JSON, Bytes::from_owner(answer.json()?))
    })
}

/// Reports of a dataset.
async fn fleet_api(report: &str, query: &str, fleet: &ServedFleet) -> Result<Content, ApiError> {
    if report == "status" {
        return Ok(status(&fleet.status()));
    }
    let answer = fleet.answer(report, query).await?;
    Ok(Content {
        origin: Some(Origin {
            command: Some(answer.command),
            identity: answer.identity,
            epoch: 0,
        }),
        ..Content::new(JSON, answer.json.into())
    })
}

fn status(status: &impl serde::Serialize) -> Content {
    // Texts and numbers can always be serialised.
    Content::new(JSON, serde_json::to_vec(status).unwrap_or_default().into())
}

/// Compresses the body if it is large enough and the client accepts that.
async fn compressed(mut content: Content, asked: &HeaderMap) -> Content {
    if content.body.len() >= SMALL
        && accepts_gzip(asked)
        && let Some(zipped) = gzip(content.body.clone()).await
    {
        content.body = zipped;
        content.is_zipped = true;
    }
    content
}

fn response(content: Content) -> Response<Body> {
    let mut response = Response::new(Either::Left(Full::new(content.body)));
    *response.status_mut() = content.status;
    let headers = response.headers_mut();
    let mut set = |name: HeaderName, value: &'static str| {
        headers.insert(name, HeaderValue::from_static(value));
    };
    set(CONTENT_TYPE, content.kind);
    set(CACHE_CONTROL, "no-store");
    set(CONTENT_SECURITY_POLICY, POLICY);
    set(X_CONTENT_TYPE_OPTIONS, "nosniff");
    set(REFERRER_POLICY, "no-referrer");
    set(VARY, "accept-encoding");
    let same_origin = "same-origin";
    set(
        HeaderName::from_static("cross-origin-resource-policy"),
        same_origin,
    );
    set(
        HeaderName::from_static("cross-origin-opener-policy"),
        same_origin,
    );
    if content.is_zipped {
        set(CONTENT_ENCODING, "gzip");
    }
    if let Some(name) = &content.file_name
        && let Ok(name) = HeaderValue::from_str(&format!("attachment; filename=\"{name}\""))
    {
        headers.insert(CONTENT_DISPOSITION, name);
    }
    if let Some(origin) = &content.origin {
        // Both are plain ASCII; commands are made so.
        if let Some(command) = &origin.command {
            let encoded: String = form_urlencoded::byte_serialize(command.as_bytes()).collect();
            if let Ok(command) = HeaderValue::from_str(&encoded) {
                headers.insert(HeaderName::from_static("heapline-command"), command);
            }
        }
        if let Ok(identity) = HeaderValue::from_str(&origin.identity) {
            headers.insert(HeaderName::from_static("heapline-trace"), identity);
        }
        headers.insert(
            HeaderName::from_static(EPOCH),
            HeaderValue::from(origin.epoch),
        );
    }
    let mut set = |name: HeaderName, value: &'static str| {
        headers.insert(name, HeaderValue::from_static(value));
    };
    if content.status == StatusCode::METHOD_NOT_ALLOWED {
        set(ALLOW, "GET, HEAD");
    }
    if matches!(
        content.status,
        StatusCode::METHOD_NOT_ALLOWED | StatusCode::PAYLOAD_TOO_LARGE
    ) {
        // There may be a body, which nobody wants to read.
        set(CONNECTION, "close");
    }
    response
}

fn accepts_gzip(headers: &HeaderMap) -> bool {
    headers
        .get_all(ACCEPT_ENCODING)
        .iter()
        .filter_map(|value| value.to_str().ok())
        .flat_map(|value| value.split(','))
        .any(|coding| {
            let mut parts = coding.split(';').map(str::trim);
            parts.next() == Some("gzip") && !parts.any(|part| part == "q=0")
        })
}

/// Compresses on another thread: this one serves all connections.
async fn gzip(body: Bytes) -> Option<Bytes> {
    let zipped = tokio::task::spawn_blocking(move || {
        let mut encoder = GzEncoder::new(Vec::with_capacity(body.len() / 4), Compression::fast());
        encoder.write_all(&body).ok()?;
        encoder.finish().ok()
    });
    zipped.await.ok()?.map(Bytes::from)
}
