//! A trace that was dropped onto the page: the one shown is compared with it.
//!
//! The page sends the bytes, because browsers do not tell where a file is. They are kept in memory while they are read, by
//! the reader of all traces, and never written to a file.

use std::io::Cursor;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http_body_util::{BodyExt, Limited};
use hyper::StatusCode;
use hyper::body::{Body as _, Incoming};

use crate::error::ApiError;
use crate::state::State;
use crate::trace::Trace;

/// The largest file that is received; the page says so before it sends a larger one.
const LARGEST: usize = 256 << 20;

/// The time limit for receiving it.
const RECEIVE_TIMEOUT: Duration = Duration::from_secs(120);

/// The longest name of a file, in bytes.
const LONGEST_NAME: usize = 255;

/// `POST /api/v1/against?name=FILE`: compares with the trace in the body.
pub(crate) async fn compare(
    state: &Arc<State>,
    query: &str,
    body: Incoming,
) -> Result<(), ApiError> {
    let name = name(query)?;
    // Others wait, with nothing of theirs in memory.
    let _only = state.receiving.acquire().await;
    let bytes = receive(body).await?;
    let size = bytes.len() as u64;
    state
        .compare_with(Trace {
            path: name,
            size: Some(size),
            strict: false,
            executable: None,
            file: None,
            open: Box::new(move || Ok(Box::new(Cursor::new(bytes.clone())))),
        })
        .await
}

/// The name of the file, without folders.
fn name(query: &str) -> Result<String, ApiError> {
    let mut pairs = form_urlencoded::parse(query.as_bytes());
    let name = match (pairs.next(), pairs.next()) {
        (Some((key, name)), None) if key == "name" => name.into_owned(),
        _ => String::new(),
    };
    let is_name = !name.is_empty() && name.len() <= LONGEST_NAME && !name.contains(['/', '\\']);
    if is_name && !name.chars().any(char::is_control) {
        return Ok(name);
    }
    Err(ApiError::new(
        StatusCode::BAD_REQUEST,
        "bad_parameter",
        "expected name=FILE, the name of the file without its directory",
    ))
}

async fn receive(body: Incoming) -> Result<Bytes, ApiError> {
    // Announced by the client: nothing of it is read.
    if body.size_hint().lower() > LARGEST as u64 {
        return Err(too_large());
    }
    let received = tokio::time::timeout(RECEIVE_TIMEOUT, Limited::new(body, LARGEST).collect());
    match received.await {
        Ok(Ok(body)) => Ok(body.to_bytes()),
        Ok(Err(error)) if error.is::<http_body_util::LengthLimitError>() => Err(too_large()),
        _ => Err(ApiError::new(
            StatusCode::REQUEST_TIMEOUT,
            "incomplete",
            "the file was not received completely",
        )),
    }
}

fn too_large() -> ApiError {
    ApiError::new(
        StatusCode::PAYLOAD_TOO_LARGE,
        "too_large",
        "the file is larger than 256 MiB; use `heapline view NEW --against OLD`",
    )
}
