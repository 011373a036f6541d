import { deserialize, serialize } from "node:v8";
import type { TestSql } from "./sql.js";

/** Which keys to list. */
export interface ListKeys {
  readonly prefix?: string;
  readonly start?: string;
  readonly startAfter?: string;
  readonly end?: string;
  readonly limit?: number;
  readonly reverse?: boolean;
}

/** The keys and values of `ctx.storage`, in a table beside those of the object. */
export class TestKv {
  readonly #sql: TestSql;
  #isThere = false;

  constructor(sql: TestSql) {
    this.#sql = sql;
  }

  get(key: string): unknown {
    this.#table();
    const [row] = this.#sql.exec("SELECT value FROM _cf_KV WHERE key = ?", key).toArray();
    return row === undefined ? undefined : read(row.value);
  }

  put(key: string, value: unknown): void {
    this.#table();
    this.#sql.exec("INSERT OR REPLACE INTO _cf_KV VALUES (?, ?)", key, serialize(value));
  }

  delete(key: string): boolean {
    this.#table();
    return this.#sql.exec("DELETE FROM _cf_KV WHERE key = ?", key).rowsWritten > 0;
  }

  list(options: ListKeys = {}): Map<string, unknown> {
    this.#table();
    const { prefix = "", start = "", startAfter, end, limit, reverse } = options;
    const rows = this.#sql.exec("SELECT key, value FROM _cf_KV ORDER BY key").toArray() as { key: string; value: ArrayBuffer }[];
    const found = rows.filter(
      ({ key }) =>
        key.startsWith(prefix) &&
        key >= start &&
        (startAfter === undefined || key > startAfter) &&
        (end === undefined || key < end),
    );
    const ordered = reverse === true ? found.reverse() : found;
    return new Map(ordered.slice(0, limit).map(({ key, value }) => [key, read(value)]));
  }

  /** Its table was taken away. */
  forget(): void {
    this.#isThere = false;
  }

  #table(): void {
    if (!this.#isThere) {
      this.#sql.exec("CREATE TABLE IF NOT EXISTS _cf_KV (key TEXT PRIMARY KEY, value BLOB) WITHOUT ROWID");
      this.#isThere = true;
    }
  }
}

function read(value: unknown): unknown {
  return deserialize(new Uint8Array(value as ArrayBuffer));
}
