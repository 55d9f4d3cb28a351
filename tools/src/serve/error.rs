//! What went wrong with a request, as OpenAI's interface tells it.

use halite::ErrorKind;
use hyper::StatusCode;
use serde_json::{Value, json};

/// A request that gets no answer, and why.
#[derive(Debug)]
pub(super) struct Refusal {
    pub status: StatusCode,
    message: String,
    /// The field of the request that is wrong.
    param: Option<&'static str>,
    code: Option<&'static str>,
}

impl Refusal {
    /// The request is wrong.
    pub fn wrong(message: impl Into<String>) -> Refusal {
        Refusal { status: StatusCode::BAD_REQUEST, message: message.into(), param: None, code: None }
    }

    /// A field of the request is wrong.
    pub fn field(param: &'static str, message: impl Into<String>) -> Refusal {
        Refusal { param: Some(param), ..Refusal::wrong(message) }
    }

    /// With another status.
    pub fn with(status: StatusCode, message: impl Into<String>) -> Refusal {
        Refusal { status, ..Refusal::wrong(message) }
    }

    /// With a code that programs look at.
    pub fn code(self, code: &'static str) -> Refusal {
        Refusal { code: Some(code), ..self }
    }

    /// With another name of a field.
    pub fn renamed(self, from: &str, to: &'static str) -> Refusal {
        let message = self.message.replace(&format!("'{from}'"), &format!("'{to}'"));
        let param = if self.param == Some(from) { Some(to) } else { self.param };
        Refusal { message, param, ..self }
    }

    /// Of the library.
    pub fn of(error: &halite::Error) -> Refusal {
        let status = match error.kind() {
            ErrorKind::InvalidInput | ErrorKind::Unsupported => StatusCode::BAD_REQUEST,
            ErrorKind::DeadlineExceeded => StatusCode::GATEWAY_TIMEOUT,
            ErrorKind::Cancelled => StatusCode::SERVICE_UNAVAILABLE,
            _ => StatusCode::INTERNAL_SERVER_ERROR,
        };
        Refusal::with(status, error.message())
    }

    /// A part of the program failed that does not fail.
    pub fn broken_off() -> Refusal {
        Refusal::with(StatusCode::INTERNAL_SERVER_ERROR, "the work on the request broke off")
    }

    /// As the body of an answer.
    pub fn json(&self) -> Value {
        let kind = match self.status.as_u16() {
            401 => "authentication_error",
            429 => "rate_limit_error",
            400..500 => "invalid_request_error",
            _ => "server_error",
        };
        json!({"error": {"message": self.message, "type": kind, "param": self.param, "code": self.code}})
    }
}
