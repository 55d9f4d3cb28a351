//! Reading the debug database of a module.

use super::read::{Result, each, text};
use super::schema as s;
use super::{DebugDatabase, FunctionDebug, Location, VmfbError};
use crate::flatbuffer::Table;

/// Reads names and locations. Location indices are checked against the table; cycles are left to whoever walks it.
pub(super) fn read_debug(table: &Table<'_>) -> Result<DebugDatabase> {
    let tags = table.vector(&s::debug::LOCATION_TAGS)?;
    let tables = table.vector(&s::debug::LOCATIONS)?;
    let count = tags.len();
    if tables.len() != count {
        let problem = format!("{} locations for {count} tags; there must be one each", tables.len());
        return Err(VmfbError::invalid("DebugDatabaseDef.location_table", problem));
    }
    let mut locations = Vec::with_capacity(count);
    for (i, tag) in tags.iter().enumerate() {
        // Entries without a location have no table behind them.
        locations.push(match tag? {
            s::location_tag::NONE => Location::Unknown,
            tag => read_location(&tables.get(i)?, tag, count, &|| {
                format!("DebugDatabaseDef.location_table[{i}]")
            })?,
        });
    }
    let functions = each(table, &s::debug::FUNCTIONS, |t, at| read_function(&t, count, at))?;
    Ok(DebugDatabase { locations, functions })
}

fn location_index(value: i32, count: usize, at: &dyn Fn() -> String) -> Result<u32> {
    u32::try_from(value).ok().filter(|v| (*v as usize) < count).ok_or_else(|| {
        VmfbError::invalid(at(), format!("location {value}, but the location table has {count} entries"))
    })
}

/// Lines and columns are printed only: a negative one becomes 0, which means unknown.
fn position(value: i32) -> u32 {
    u32::try_from(value).unwrap_or(0)
}

fn read_location(table: &Table<'_>, tag: u8, count: usize, at: &dyn Fn() -> String) -> Result<Location> {
    let index = |value| location_index(value, count, at);
    Ok(match tag {
        s::location_tag::CALL_SITE => Location::CallSite {
            callee: index(table.scalar(&s::call_site::CALLEE)?)?,
            caller: index(table.scalar(&s::call_site::CALLER)?)?,
        },
        s::location_tag::FILE_LINE_COL => Location::FileLineCol {
            filename: text(table, &s::file_line_col::FILENAME)?,
            line: position(table.scalar(&s::file_line_col::LINE)?),
            column: position(table.scalar(&s::file_line_col::COLUMN)?),
        },
        s::location_tag::FUSED => Location::Fused {
            metadata: text(table, &s::fused::METADATA)?,
            locations: table
                .vector(&s::fused::LOCATIONS)?
                .iter()
                .map(|v| index(v?))
                .collect::<Result<_>>()?,
        },
        s::location_tag::NAME => {
            let child = table.scalar(&s::name_loc::CHILD)?;
            let child = if child < 0 { None } else { Some(index(child)?) };
            Location::Name { name: text(table, &s::name_loc::NAME)?, child }
        }
        _ => {
            let problem = format!("location kind {tag}; kinds 0 to 4 exist");
            return Err(VmfbError::invalid(at(), problem));
        }
    })
}

fn read_function(table: &Table<'_>, count: usize, at: &dyn Fn() -> String) -> Result<FunctionDebug> {
    let pairs = table.vector(&s::source_map::LOCATIONS)?;
    let mut locations = Vec::with_capacity(pairs.len());
    for pair in pairs.iter() {
        let [o0, o1, o2, o3, l0, l1, l2, l3] = *pair?;
        let location = location_index(i32::from_le_bytes([l0, l1, l2, l3]), count, at)?;
        locations.push((u32::from_le_bytes([o0, o1, o2, o3]), location));
    }
    if !locations.is_sorted_by_key(|(offset, _)| *offset) {
        return Err(VmfbError::invalid(at(), "bytecode offsets of the source map do not ascend"));
    }
    Ok(FunctionDebug { local_name: text(table, &s::source_map::LOCAL_NAME)?, locations })
}
