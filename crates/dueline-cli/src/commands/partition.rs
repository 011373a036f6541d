//! `dueline partition list`

use std::process::ExitCode;

use super::pages::{self, Walk};
use crate::arguments::{ListPartitions, Partition, PartitionVerb};
use crate::client::{Client, Path};
use crate::failure::Failure;
use crate::output::{Column, Output};

const COLUMNS: &[Column] = &[Column {
    heading: "PARTITION",
    cell: |partition| partition.cell("partition"),
}];

pub(crate) fn run(partition: Partition, output: &Output) -> Result<ExitCode, Failure> {
    let PartitionVerb::List(list) = partition.verb;
    self::list(list, output)?;
    Ok(ExitCode::SUCCESS)
}

fn list(list: ListPartitions, output: &Output) -> Result<(), Failure> {
    let client = Client::new(&list.server)?;
    let walk = Walk {
        path: Path::partitions(),
        array: "partitions",
        limit: list.limit,
        page_token: list.page_token,
        filter: Vec::new(),
    };
    pages::show(&client, walk, COLUMNS, "no partitions", output)
}
