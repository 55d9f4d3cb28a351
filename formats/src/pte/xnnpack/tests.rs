//! Data that are damaged, and those of old exports.

use super::*;
use bytes::Bytes;

#[test]
fn damaged_data_say_what_is_wrong() {
    let said = |bytes: Vec<u8>| XnnGraph::parse(&Bytes::from(bytes)).unwrap_err().to_string();
    assert!(said(b"XH00".to_vec()).contains("4 bytes"), "{}", said(b"XH00".to_vec()));
    let mut header = vec![0; 64];
    header[4..8].copy_from_slice(b"XH00");
    header[10] = 32;
    header[14] = 16;
    header[18] = 40;
    assert!(said(header.clone()).contains("do not go together in 64 bytes"), "{}", said(header));
    // Without the header it is a graph of before, whose identifier is wrong.
    let mut old = vec![0; 64];
    old[4..8].copy_from_slice(b"XX00");
    assert!(said(old).contains("XX00"));
}
