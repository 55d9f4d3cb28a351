//! HTTP: connections, who may ask, which path is what.

use std::{
    convert::Infallible,
    net::{Ipv4Addr, SocketAddr},
    sync::Arc,
    time::Duration,
};

use bytes::Bytes;
use http_body_util::{BodyExt, Limited};
use hyper::{
    Method, Request, Response, StatusCode,
    body::Incoming,
    header::{self, HeaderMap},
    server::conn::http1,
    service::service_fn,
};
use hyper_util::{
    rt::{TokioIo, TokioTimer},
    server::graceful::GracefulShutdown,
};
use tokio::{
    net::{TcpListener, TcpStream},
    sync::{OwnedSemaphorePermit, Semaphore, watch},
};

use super::{
    body::{self, Body},
    error::Refusal,
    fields::Form,
    job,
    patience::Patient,
    response_events,
    work::Work,
};

type Result<T, E = Refusal> = std::result::Result<T, E>;

/// How long a request's headers, and its body, may take, and how long a client may take nothing of an answer.
const PATIENCE: Duration = Duration::from_secs(30);
/// Most connections at the same time.
const MOST_CONNECTIONS: usize = 256;
/// How many times as long as a body may be what is still taken of a longer one, so that its client reads why it gets no answer.
const PATIENT_TIMES: usize = 8;
/// Bytes that the headers of a request may have.
const MOST_HEADERS: usize = 32 << 10;

/// Who may ask, and how much.
#[derive(Clone, Debug)]
pub(super) struct Rules {
    /// What requests have to know, if anything.
    pub token: Option<String>,
    /// Bytes of a request's body.
    pub most_body: usize,
    /// How long what runs may take to end when the server does.
    pub grace: Duration,
}

/// Answers requests until `stop` says so; what runs then has a while to end.
pub(super) async fn serve(
    listener: TcpListener,
    work: Arc<Work>,
    rules: Rules,
    mut stop: watch::Receiver<bool>,
) {
    let connections = Arc::new(Semaphore::new(MOST_CONNECTIONS));
    let graceful = GracefulShutdown::new();
    let rules = Arc::new(rules);
    loop {
        // Where all places are taken, too, the server ends when it is told to.
        let taken = tokio::select! {
            taken = next(&connections, &listener) => taken,
            _ = stop.wait_for(|stop| *stop) => break,
        };
        let Some((place, accepted)) = taken else { break };
        let (stream, peer) = match accepted {
            Ok(accepted) => accepted,
            Err(error) => {
                // Without files to open there is nothing to do but to wait until some are closed.
                log::warn!("cannot take a connection: {error}");
                tokio::time::sleep(Duration::from_millis(100)).await;
                continue;
            }
        };
        _ = stream.set_nodelay(true);
        let (work, rules) = (work.clone(), rules.clone());
        let service = service_fn(move |request| {
            let (work, rules) = (work.clone(), rules.clone());
            async move { Ok::<_, Infallible>(answer(&work, &rules, peer, request).await) }
        });
        let connection = http1::Builder::new()
            .timer(TokioTimer::new())
            .header_read_timeout(PATIENCE)
            .max_buf_size(MOST_HEADERS)
            .serve_connection(TokioIo::new(Patient::new(stream, PATIENCE)), service);
        let connection = graceful.watch(connection);
        tokio::spawn(async move {
            if let Err(error) = connection.await {
                log::debug!("{peer}: {error}");
            }
            drop(place);
        });
    }
    drop(listener);
    end(graceful, &work, &rules).await;
}

/// A place among the connections, and a connection.
async fn next(
    connections: &Arc<Semaphore>,
    listener: &TcpListener,
) -> Option<(OwnedSemaphorePermit, std::io::Result<(TcpStream, SocketAddr)>)> {
    let place = connections.clone().acquire_owned().await.ok()?;
    Some((place, listener.accept().await))
}

/// Lets what runs end, and ends it when it takes too long.
async fn end(graceful: GracefulShutdown, work: &Work, rules: &Rules) {
    let ended = graceful.shutdown();
    let mut ended = std::pin::pin!(ended);
    if tokio::time::timeout(rules.grace, ended.as_mut()).await.is_err() {
        log::info!("requests still run; they are ended");
        work.cancel();
        _ = tokio::time::timeout(rules.grace, ended).await;
    }
}

async fn answer(
    work: &Arc<Work>,
    rules: &Rules,
    peer: SocketAddr,
    request: Request<Incoming>,
) -> Response<Body> {
    let (method, path) = (request.method().clone(), request.uri().path().to_owned());
    let made = routed(work, rules, request).await;
    let response = made.unwrap_or_else(|refusal| body::refused(&refusal));
    log::info!("{peer} {method} {path} {}", response.status().as_u16());
    response
}

async fn routed(work: &Arc<Work>, rules: &Rules, request: Request<Incoming>) -> Result<Response<Body>> {
    allowed(rules, request.headers())?;
    // What watches servers may ask with HEAD: hyper leaves the body out.
    let method = match request.method() {
        &Method::HEAD => Method::GET,
        method => method.clone(),
    };
    let path = rooted(request.uri().path().trim_end_matches('/'));
    let ok = |value| Ok(body::json(StatusCode::OK, &value));
    match (&method, path.as_str()) {
        (&Method::GET, "/health" | "/v1/health") => ok(work.health()),
        (&Method::GET, "/v1/models") => ok(work.models()),
        (&Method::GET, path) if path.starts_with("/v1/models/") => {
            ok(work.model(&plain(&path["/v1/models/".len()..]))?)
        }
        (&Method::POST, "/v1/completions") => {
            job::answer(work.text(Form::Completion, &read(rules, request).await?).await?).await
        }
        (&Method::POST, "/v1/chat/completions") => {
            job::answer(work.text(Form::Chat, &read(rules, request).await?).await?).await
        }
        (&Method::POST, "/v1/responses") => {
            let asked = work.response(&read(rules, request).await?).await?;
            response_events::answer(asked).await
        }
        (&Method::POST, "/v1/embeddings") => work.vectors(&read(rules, request).await?).await,
        (
            method,
            "/health"
            | "/v1/models"
            | "/v1/completions"
            | "/v1/chat/completions"
            | "/v1/responses"
            | "/v1/embeddings",
        ) => Err(Refusal::with(StatusCode::METHOD_NOT_ALLOWED, format!("{path} does not answer {method}"))),
        (method, path) => {
            let path = if path.is_empty() { "/" } else { path };
            let text = format!(
                "there is no {method} {path}; there are GET /health, /v1/models and POST /v1/completions, \
                 /v1/chat/completions, /v1/responses, /v1/embeddings"
            );
            Err(Refusal::with(StatusCode::NOT_FOUND, text).code("unknown_url"))
        }
    }
}

/// A path with its version, which clients of other servers leave out.
fn rooted(path: &str) -> String {
    const PARTS: [&str; 5] = ["/models", "/completions", "/chat/completions", "/responses", "/embeddings"];
    let is_short = PARTS.contains(&path) || path.starts_with("/models/");
    if is_short { format!("/v1{path}") } else { path.to_owned() }
}

/// A part of a path as it was before it was made a part of one: `my%20model`.
fn plain(text: &str) -> String {
    let mut bytes = text.as_bytes().iter();
    let mut all = Vec::with_capacity(text.len());
    while let Some(&byte) = bytes.next() {
        let code = bytes.as_slice().first_chunk::<2>().filter(|_| byte == b'%');
        let code = code.and_then(|code| std::str::from_utf8(code).ok());
        match code.and_then(|code| u8::from_str_radix(code, 16).ok()) {
            Some(coded) => {
                bytes.nth(1);
                all.push(coded);
            }
            None => all.push(byte),
        }
    }
    String::from_utf8_lossy(&all).into_owned()
}

/// Refuses those who may not ask: without the token; without one, pages of other sites that a browser lets ask.
fn allowed(rules: &Rules, headers: &HeaderMap) -> Result<()> {
    let text = |name: header::HeaderName| {
        headers.get(name).and_then(|value: &header::HeaderValue| value.to_str().ok())
    };
    match &rules.token {
        Some(token) => {
            let given = text(header::AUTHORIZATION).and_then(|value| value.split_once(' '));
            let given = given.filter(|(how, _)| how.eq_ignore_ascii_case("Bearer")).map(|(_, token)| token);
            match given.is_some_and(|given| same(given.trim().as_bytes(), token.as_bytes())) {
                true => Ok(()),
                false => {
                    let text = "the request has no valid token (header 'Authorization: Bearer TOKEN')";
                    Err(Refusal::with(StatusCode::UNAUTHORIZED, text).code("invalid_api_key"))
                }
            }
        }
        None => {
            // Without one it is no browser's request. What is no text names nobody.
            let host = if headers.contains_key(header::HOST) {
                text(header::HOST).unwrap_or("")
            } else {
                "localhost"
            };
            let name = match host.rsplit_once(':') {
                Some((name, port)) if port.bytes().all(|byte| byte.is_ascii_digit()) => name,
                _ => host,
            };
            // An address, and not only what begins like one: `127.example.com` is a name, and may be anybody's.
            let is_address = |name: &str| name.parse::<Ipv4Addr>().is_ok_and(|address| address.is_loopback());
            match name.eq_ignore_ascii_case("localhost") || name == "[::1]" || is_address(name) {
                true => Ok(()),
                false => {
                    let text = format!("the server is for this machine, and was asked as '{name}'");
                    Err(Refusal::with(StatusCode::FORBIDDEN, text))
                }
            }
        }
    }
}

/// Compares in a time that does not tell how much is the same.
fn same(given: &[u8], wanted: &[u8]) -> bool {
    let differ = given.iter().zip(wanted).fold(0, |all, (a, b)| all | (a ^ b));
    given.len() == wanted.len() && std::hint::black_box(differ) == 0
}

/// The body of a request, which is JSON and not too large.
async fn read(rules: &Rules, request: Request<Incoming>) -> Result<Bytes> {
    let kind = request.headers().get(header::CONTENT_TYPE).and_then(|kind| kind.to_str().ok()).unwrap_or("");
    let kind = kind.split(';').next().unwrap_or("").trim();
    // Browsers ask first before pages of other sites may send this type.
    if !kind.eq_ignore_ascii_case("application/json") {
        let text = format!(
            "the body is '{kind}' and not application/json; say so ('Content-Type: application/json')"
        );
        return Err(Refusal::with(StatusCode::UNSUPPORTED_MEDIA_TYPE, text));
    }
    let too_large = || {
        let text = format!("the body is larger than {} bytes (--max-body)", rules.most_body);
        Err(Refusal::with(StatusCode::PAYLOAD_TOO_LARGE, text))
    };
    // Whoever says so at once need not wait for it.
    let least = hyper::body::Body::size_hint(request.body()).lower();
    let waits = request.headers().contains_key(header::EXPECT);
    let mut body = request.into_body();
    if usize::try_from(least).map_or(true, |least| least > rules.most_body) {
        if !waits {
            tokio::spawn(leave(body, rules.most_body));
        }
        return too_large();
    }
    match tokio::time::timeout(PATIENCE, Limited::new(&mut body, rules.most_body).collect()).await {
        Ok(Ok(body)) => Ok(body.to_bytes()),
        Ok(Err(error)) if error.is::<http_body_util::LengthLimitError>() => {
            tokio::spawn(leave(body, rules.most_body));
            too_large()
        }
        Ok(Err(error)) => Err(Refusal::wrong(format!("the body did not come: {error}"))),
        Err(_) => Err(Refusal::with(StatusCode::REQUEST_TIMEOUT, "the body did not come in time")),
    }
}

/// Takes some more of a body that is too large behind its answer, and keeps nothing: many clients read no answer before they have sent all,
/// and would only see that the connection is gone.
async fn leave(mut body: Incoming, most: usize) {
    let mut left = most.saturating_mul(PATIENT_TIMES);
    let taken = async {
        while let Some(Ok(frame)) = body.frame().await {
            left = left.saturating_sub(frame.data_ref().map_or(0, Bytes::len));
            if left == 0 {
                break;
            }
        }
    };
    _ = tokio::time::timeout(PATIENCE, taken).await;
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test that cannot go on panics")]
mod tests {
    use super::*;

    fn status(token: Option<&str>, headers: &[(&'static str, &'static str)]) -> u16 {
        let rules = Rules { token: token.map(str::to_owned), most_body: 1, grace: PATIENCE };
        let all = headers.iter().map(|(name, value)| {
            (header::HeaderName::from_static(name), header::HeaderValue::from_static(value))
        });
        allowed(&rules, &all.collect()).err().map_or(200, |refusal| refusal.status.as_u16())
    }

    #[test]
    fn who_does_not_know_the_token_is_refused() {
        assert_eq!(status(Some("abc"), &[("authorization", "Bearer abc")]), 200);
        assert_eq!(status(Some("abc"), &[("authorization", "bearer abc")]), 200);
        assert_eq!(status(Some("abc"), &[("authorization", "abc")]), 401);
        assert_eq!(status(Some("abc"), &[("authorization", "Bearer abd")]), 401);
        assert_eq!(status(Some("abc"), &[("authorization", "Bearer ab")]), 401);
        assert_eq!(status(Some("abc"), &[("host", "localhost")]), 401);
    }

    #[test]
    fn names_in_paths_are_what_they_were() {
        for (coded, name) in [
            ("a", "a"),
            ("my%20model", "my model"),
            ("%C3%a4%2Fb", "ä/b"),
            ("100%", "100%"),
            ("%zz%4", "%zz%4"),
        ] {
            assert_eq!(plain(coded), name);
        }
    }

    #[test]
    fn other_names_of_this_machine_are_refused() {
        assert_eq!(status(None, &[("host", "localhost:8080")]), 200);
        assert_eq!(status(None, &[("host", "[::1]:8080")]), 200);
        assert_eq!(status(None, &[("host", "127.0.0.2")]), 200);
        assert_eq!(status(None, &[("host", "LocalHost:8080")]), 200);
        for name in [
            "evil.example:8080",
            "127.evil.example",
            "127.0.0.1.evil.example:80",
            "127.",
            "",
            "localhost.evil.example",
        ] {
            assert_eq!(status(None, &[("host", name)]), 403, "{name}");
        }
    }

    #[test]
    fn a_server_ends_though_all_its_places_are_taken() {
        let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build();
        runtime.unwrap().block_on(async {
            let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
            let address = listener.local_addr().unwrap();
            let grace = Duration::from_millis(50);
            let work = Arc::new(Work::new("none".to_owned(), None, None, 1, PATIENCE, true));
            let (send, stop) = watch::channel(false);
            let served =
                tokio::spawn(serve(listener, work, Rules { token: None, most_body: 1, grace }, stop));
            // Clients that say nothing, in all places and before the door.
            let mut clients = Vec::new();
            for _ in 0..MOST_CONNECTIONS + 1 {
                clients.push(TcpStream::connect(address).await.unwrap());
            }
            tokio::time::sleep(Duration::from_millis(100)).await;
            send.send(true).unwrap();
            let ended = tokio::time::timeout(PATIENCE / 2, served).await;
            ended.expect("the server ends while its clients still wait").unwrap();
        });
    }
}
