//! Device URIs: `driver[:[//]path][?key=value&key=value]`.

use crate::{Options, Result, status};

/// A parsed device URI.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DeviceUri {
    /// Driver name: everything before the first `:` or `?`.
    pub driver: String,
    /// Path within the driver; empty for its default device.
    pub path: String,
    /// Options after `?`.
    pub options: Options,
}

impl DeviceUri {
    /// Parses a URI. Accepts `vulkan`, `vulkan://`, `vulkan://0`, `vulkan://GPU-…?repair=off`.
    pub fn parse(text: &str) -> Result<Self> {
        let (head, query) = text.split_once('?').map_or((text, None), |(h, q)| (h, Some(q)));
        let (driver, path) = head.split_once(':').unwrap_or((head, ""));
        if driver.is_empty() {
            return Err(status!(
                InvalidArgument,
                "device URI '{text}' has no driver name; write e.g. 'vulkan'"
            ));
        }
        let mut options = Options::new();
        for pair in query.into_iter().flat_map(|q| q.split('&')).filter(|p| !p.is_empty()) {
            let (key, value) = pair.split_once('=').unwrap_or((pair, "true"));
            if options.insert(key.to_owned(), value.to_owned()).is_some() {
                return Err(status!(InvalidArgument, "device URI '{text}' gives option '{key}' twice"));
            }
        }
        let path = path.strip_prefix("//").unwrap_or(path);
        Ok(DeviceUri { driver: driver.to_owned(), path: path.to_owned(), options })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn forms() {
        let u = DeviceUri::parse("vulkan").unwrap();
        assert_eq!((u.driver.as_str(), u.path.as_str()), ("vulkan", ""));
        let u = DeviceUri::parse("vulkan://GPU-00?repair=off&robust").unwrap();
        assert_eq!(u.path, "GPU-00");
        assert_eq!(u.options["repair"], "off");
        assert_eq!(u.options["robust"], "true");
        assert_eq!(DeviceUri::parse("vulkan:3").unwrap().path, "3");
        assert_eq!(DeviceUri::parse("vulkan?x=y").unwrap().options["x"], "y");
        assert!(DeviceUri::parse("://x").is_err());
        assert!(DeviceUri::parse("v?a=1&a=2").is_err());
    }

    #[test]
    fn a_path_may_hold_colons_and_an_option_equal_signs() {
        let u = DeviceUri::parse("remote://host:1234/0?key=a=b&&flag=").unwrap();
        assert_eq!((u.driver.as_str(), u.path.as_str()), ("remote", "host:1234/0"));
        assert_eq!(u.options["key"], "a=b");
        assert_eq!(u.options["flag"], "");
        assert_eq!(u.options.len(), 2);
    }

    #[test]
    fn errors_name_the_uri() {
        assert!(DeviceUri::parse("").unwrap_err().message().contains("no driver name"));
        assert!(DeviceUri::parse("v?a=1&a").unwrap_err().message().contains("'a' twice"));
    }
}
