//! Names of databases and tables (contract section 7.4; recordings tidb 80 to 85).

use std::collections::BTreeMap;

use serde::Serialize;
use serde_json::Value;

use crate::sim::wire::{Reply, indented};
use crate::sim::world::World;

use super::{json, text};

#[derive(Serialize, Clone)]
struct Name {
    #[serde(rename = "O")]
    original: String,
    #[serde(rename = "L")]
    lower: String,
}

impl Name {
    fn new(name: &str) -> Self {
        Self { original: name.to_owned(), lower: name.to_lowercase() }
    }
}

#[derive(Serialize)]
struct Nothing {}

#[derive(Serialize)]
struct Database {
    id: u64,
    db_name: Name,
    charset: &'static str,
    collate: &'static str,
    #[serde(rename = "Deprecated")]
    deprecated: Nothing,
    state: u64,
    policy_ref_info: Option<()>,
}

impl Database {
    fn new(id: u64, name: &str, state: u64) -> Self {
        Self {
            id,
            db_name: Name::new(name),
            charset: "utf8mb4",
            collate: "utf8mb4_bin",
            deprecated: Nothing {},
            state,
            policy_ref_info: None,
        }
    }
}

/// Databases that every cluster has; the virtual ones have state 0.
const SYSTEM: [(u64, &str, u64); 6] = [
    (112, "test", 5),
    (2, "sys", 5),
    (1, "mysql", 5),
    (4_611_686_018_427_397_904, "PERFORMANCE_SCHEMA", 0),
    (4_611_686_018_427_407_904, "METRICS_SCHEMA", 0),
    (4_611_686_018_427_387_905, "INFORMATION_SCHEMA", 0),
];

/// Every column and setting of a table as v8.5.3 shows it, but for its id and name.
const TABLE: &str = include_str!("table.json");
const ID_PLACE: &str = "\"@id@\"";
const NAME_PLACE: &str = "@name@";

/// `/schema`: all databases, or, with `table_ids`, some tables as an object keyed by their ids.
pub(super) fn schema(world: &mut World, table_ids: Option<String>) -> Reply {
    let Some(ids) = table_ids else {
        let mut all: Vec<Database> = SYSTEM.iter().map(|(id, name, state)| Database::new(*id, name, *state)).collect();
        all.extend(world.databases().iter().map(|(id, name)| Database::new(*id, name, 5)));
        world.shuffle(&mut all);
        return json(&all);
    };
    let mut tables = BTreeMap::new();
    for id in ids.split(',') {
        let Ok(number) = id.parse::<u64>() else {
            return text(400, &format!("strconv.ParseInt: parsing \"{id}\": invalid syntax"));
        };
        if let Some((_, name)) = world.table_by_id(number) {
            tables.insert(number.to_string(), (number, name.to_owned()));
        }
    }
    let entries: Vec<String> =
        tables.values().map(|(id, name)| format!(" \"{id}\": {}", nested(&table(*id, name), 1))).collect();
    Reply::new(200, super::JSON, format!("{{\n{}\n}}", entries.join(",\n")))
}

#[derive(Serialize)]
struct IdName {
    id: u64,
    name: Name,
}

/// `/schema/{db}`: its tables, whole or by id and name only. Each is written on its own, so the list is not indented.
pub(super) fn tables(world: &World, database: &str, names_only: bool) -> Reply {
    let Some(index) = world.databases().iter().position(|(_, name)| name.eq_ignore_ascii_case(database)) else {
        if SYSTEM.iter().any(|(_, name, _)| name.eq_ignore_ascii_case(database)) {
            return Reply::new(200, super::JSON, "[]");
        }
        return text(400, &format!("[schema:1049]Unknown database '{database}'"));
    };
    let parts: Vec<String> = world
        .tables_in(index)
        .into_iter()
        .map(|(id, name)| {
            if names_only {
                let name = Name::new(name);
                indented(&IdName { id, name }, 1)
            } else {
                table(id, name)
            }
        })
        .collect();
    Reply::new(200, super::JSON, format!("[\n{}\n]", parts.join(",\n")))
}

/// `/db-table/{id}`: one table with its database.
pub(super) fn by_id(world: &World, id: &str) -> Reply {
    let Ok(number) = id.parse::<u64>() else {
        return text(400, &format!("strconv.ParseInt: parsing \"{id}\": invalid syntax"));
    };
    let Some((database, name)) = world.table_by_id(number) else {
        return text(400, &format!("[schema:1146]Table which ID = {id} does not exist."));
    };
    let (database_id, database_name) = &world.databases()[database];
    let info = indented(&Database::new(*database_id, database_name, 5), 1);
    let body = format!(
        "{{\n \"db_info\": {},\n \"table_info\": {},\n \"schema_version\": 180\n}}",
        nested(&info, 1),
        nested(&table(number, name), 1)
    );
    Reply::new(200, super::JSON, body)
}

fn table(id: u64, name: &str) -> String {
    let quoted = Value::String(name.to_owned()).to_string();
    TABLE.trim_end().replace(ID_PLACE, &id.to_string()).replace(&format!("\"{NAME_PLACE}\""), &quoted)
}

/// Indents all lines but the first by some spaces more.
fn nested(json: &str, spaces: usize) -> String {
    json.replace('\n', &format!("\n{}", " ".repeat(spaces)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_table_is_json_with_its_id_and_name() {
        let table: Value = serde_json::from_str(&table(17, "orders_001")).unwrap();
        assert_eq!(table["id"], 17);
        assert_eq!(table["name"]["O"], "orders_001");
    }
}
