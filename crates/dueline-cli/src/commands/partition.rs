//! `dueline partition list`

use std::process::ExitCode;

use super::pages::{self, Walk};
use crate::arguments::{ListPartitions, Partition, PartitionVerb};
use crate::client::{Client, Path};
use crate::failure::Failure;
use crate::output::{Column, Output, cell_text, field};

/// A partition is listed as an object with its name, or as its name alone.
const COLUMNS: &[Column] = &[Column {
    heading: "PARTITION",
    cell: |partition| {
        if partition.is_object() {
            field(partition, "partition")
        } else {
            cell_text(partition)
        }
    },
}];

pub(crate) fn run(partition: Partition, output: &mut Output) -> Result<ExitCode, Failure> {
    let PartitionVerb::List(list) = partition.verb;
    self::list(list, output)?;
    Ok(ExitCode::SUCCESS)
}

fn list(list: ListPartitions, output: &mut Output) -> Result<(), Failure> {
    let client = Client::new(&list.server)?;
    let page = pages::read(
        &client,
        Walk {
            path: Path::partitions(),
            array: "partitions",
            limit: list.limit,
            page_token: list.page_token,
            filter: Vec::new(),
        },
    )?;
    output.list(
        &page,
        pages::items(&page, "partitions"),
        COLUMNS,
        "no partitions",
    )
}
