//! Formats of strings, as patterns.

/// Those that there are.
pub(super) const NAMES: &str = "date, date-time, duration, email, hostname, ipv4, time, uri, uuid";

/// The pattern of a format. Each is narrower than the format, or the same.
pub(super) fn pattern(format: &str) -> Option<&'static str> {
    Some(match format {
        "date" => {
            r"^[0-9]{4}-(((0[13578]|1[02])-(0[1-9]|[12][0-9]|3[01]))|((0[469]|11)-(0[1-9]|[12][0-9]|30))|(02-(0[1-9]|1[0-9]|2[0-8])))$"
        }
        "time" => {
            r"^([01][0-9]|2[0-3]):[0-5][0-9]:[0-5][0-9](\.[0-9]{1,6})?(Z|[+-]([01][0-9]|2[0-3]):[0-5][0-9])$"
        }
        "date-time" => {
            r"^[0-9]{4}-(((0[13578]|1[02])-(0[1-9]|[12][0-9]|3[01]))|((0[469]|11)-(0[1-9]|[12][0-9]|30))|(02-(0[1-9]|1[0-9]|2[0-8])))T([01][0-9]|2[0-3]):[0-5][0-9]:[0-5][0-9](\.[0-9]{1,6})?(Z|[+-]([01][0-9]|2[0-3]):[0-5][0-9])$"
        }
        "duration" => {
            r"^P([0-9]{1,6}W|[0-9]{1,6}D(T[0-9]{1,6}H([0-9]{1,6}M([0-9]{1,6}S)?)?)?|T([0-9]{1,6}H([0-9]{1,6}M([0-9]{1,6}S)?)?|[0-9]{1,6}M([0-9]{1,6}S)?|[0-9]{1,6}S))$"
        }
        "email" => {
            r"^[A-Za-z0-9_+-]{1,32}(\.[A-Za-z0-9_+-]{1,32})?@[A-Za-z0-9]{1,32}(-[A-Za-z0-9]{1,16})?(\.[A-Za-z]{2,16}){1,2}$"
        }
        "hostname" => {
            r"^[A-Za-z0-9]{1,32}(-[A-Za-z0-9]{1,16})?(\.[A-Za-z0-9]{1,32}(-[A-Za-z0-9]{1,16})?){0,4}$"
        }
        "ipv4" => {
            r"^((25[0-5]|2[0-4][0-9]|1[0-9][0-9]|[1-9]?[0-9])\.){3}(25[0-5]|2[0-4][0-9]|1[0-9][0-9]|[1-9]?[0-9])$"
        }
        "uri" => {
            r"^https?://[A-Za-z0-9]{1,32}(-[A-Za-z0-9]{1,16})?(\.[A-Za-z0-9]{1,32}){1,3}(:[1-9][0-9]{0,3})?(/[A-Za-z0-9._~-]*)*(\?[A-Za-z0-9._~=&-]*)?(#[A-Za-z0-9._~-]*)?$"
        }
        "uuid" => r"^[0-9a-fA-F]{8}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{12}$",
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::schema::pattern::Pattern;

    #[test]
    fn each_format_is_a_pattern() {
        for name in NAMES.split(", ") {
            let source = pattern(name).unwrap();
            assert!(Pattern::new(source, (0, u32::MAX)).unwrap().is_some(), "{name}");
        }
    }
}
