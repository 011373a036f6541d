import type { SqlJs, SqlJsDatabase, SqlJsStatement } from "./sql-js.js";

/** What a column holds. */
export type Value = ArrayBuffer | string | number | null;
type Row = Record<string, Value>;

/** Statements that the platform refuses: transactions are its own. */
const REFUSED = /^\s*(BEGIN|COMMIT|END|ROLLBACK|SAVEPOINT|RELEASE|ATTACH|DETACH|VACUUM|PRAGMA)\b/i;
/** Prepared statements that are kept. */
const KEPT_MAX = 256;

/** A SQLite database in memory. */
export async function openDatabase(): Promise<SqlJsDatabase> {
  let load: SqlJs["default"];
  try {
    // Without the types that it may have beside it: they are no others than these.
    ({ default: load } = (await import("sql.js" as string)) as SqlJs);
  } catch (cause) {
    throw new Error("@dueline/durable-object/testing needs sql.js: npm install --save-dev sql.js", { cause });
  }
  const { Database } = await load();
  return new Database();
}

/** `ctx.storage.sql` over a database in memory. */
export class TestSql {
  readonly #database: SqlJsDatabase;
  readonly #kept = new Map<string, SqlJsStatement>();
  #depth = 0;

  constructor(database: SqlJsDatabase) {
    this.#database = database;
  }

  /** Runs statements; the bindings are those of the last. */
  exec(sql: string, ...bindings: unknown[]): TestCursor {
    const bound = bindings.map(binding);
    const before = this.#changes();
    const { columns, rows } = this.#run(sql, bound);
    return new TestCursor(columns, rows, this.#changes() - before);
  }

  get databaseSize(): number {
    const [[pages = 0, bytes = 0] = []] = this.#all(
      "SELECT page_count, page_size FROM pragma_page_count, pragma_page_size",
    ) as number[][];
    return pages * bytes;
  }

  /** All of it commits, or nothing. */
  transactionSync<T>(inside: () => T): T {
    const name = `nested_${this.#depth}`;
    this.#all(`SAVEPOINT ${name}`);
    this.#depth += 1;
    try {
      const done = inside();
      this.#all(`RELEASE ${name}`);
      return done;
    } catch (thrown) {
      this.#all(`ROLLBACK TO ${name}`);
      this.#all(`RELEASE ${name}`);
      throw thrown;
    } finally {
      this.#depth -= 1;
    }
  }

  /** Takes everything away that is there. */
  deleteAll(): void {
    if (this.#depth > 0) {
      throw new Error("deleteAll() is not for a transaction");
    }
    const found = this.#all("SELECT type, name FROM sqlite_master WHERE type IN ('table', 'view') AND name NOT LIKE 'sqlite_%'");
    for (const [type, name] of found) {
      this.exec(`DROP ${String(type)} "${String(name).replaceAll('"', '""')}"`);
    }
  }

  close(): void {
    this.#database.close();
  }

  #run(sql: string, bound: readonly unknown[]): { columns: string[]; rows: unknown[][] } {
    if (isOne(sql)) {
      refuse(sql);
      return read(this.#prepared(sql), bound);
    }
    let last: { columns: string[]; rows: unknown[][] } = { columns: [], rows: [] };
    const statements = this.#database.iterateStatements(sql);
    for (let next = statements.next(); next.done !== true; next = statements.next()) {
      const isLast = isOnlySpace(statements.getRemainingSQL());
      refuse(next.value.getSQL());
      last = read(next.value, isLast ? bound : []);
    }
    return last;
  }

  #prepared(sql: string): SqlJsStatement {
    const kept = this.#kept.get(sql);
    if (kept !== undefined) {
      return kept;
    }
    if (this.#kept.size >= KEPT_MAX) {
      for (const statement of this.#kept.values()) {
        statement.free();
      }
      this.#kept.clear();
    }
    const statement = this.#database.prepare(sql);
    this.#kept.set(sql, statement);
    return statement;
  }

  #all(sql: string): unknown[][] {
    return read(this.#prepared(sql), []).rows;
  }

  #changes(): number {
    return Number(this.#all("SELECT total_changes()")[0]?.[0]);
  }
}

/** What `exec` returns. All rows have been read. */
export class TestCursor {
  readonly columnNames: string[];
  /** Rows that the statement returned: the platform counts those that it visited. */
  readonly rowsRead: number;
  /** Rows that were changed: the platform counts those of indexes too. */
  readonly rowsWritten: number;
  readonly #rows: unknown[][];
  #next = 0;

  constructor(columnNames: string[], rows: unknown[][], rowsWritten: number) {
    this.columnNames = columnNames;
    this.#rows = rows;
    this.rowsRead = rows.length;
    this.rowsWritten = rowsWritten;
  }

  next(): { done?: false; value: Row } | { done: true; value?: never } {
    const row = this.#rows[this.#next];
    if (row === undefined) {
      return { done: true };
    }
    this.#next += 1;
    return { value: Object.fromEntries(this.columnNames.map((name, index) => [name, row[index]])) as Row };
  }

  *[Symbol.iterator](): IterableIterator<Row> {
    for (let next = this.next(); next.done !== true; next = this.next()) {
      yield next.value;
    }
  }

  toArray(): Row[] {
    return [...this];
  }

  one(): Row {
    const [row, ...more] = this.toArray();
    if (row === undefined || more.length > 0) {
      throw new Error(`one() expects exactly one row, the query returned ${row === undefined ? "none" : "more"}`);
    }
    return row;
  }

  *raw(): IterableIterator<Value[]> {
    for (; this.#next < this.#rows.length; this.#next += 1) {
      yield this.#rows[this.#next] as Value[];
    }
  }
}

function read(statement: SqlJsStatement, bound: readonly unknown[]): { columns: string[]; rows: unknown[][] } {
  try {
    statement.bind(bound);
    const rows: unknown[][] = [];
    while (statement.step()) {
      rows.push(statement.get().map(value));
    }
    return { columns: statement.getColumnNames(), rows };
  } finally {
    statement.reset();
  }
}

/** Bytes come back as the platform gives them. */
function value(found: unknown): Value {
  return found instanceof Uint8Array ? (found.slice().buffer as ArrayBuffer) : (found as Value);
}

function binding(given: unknown): unknown {
  if (given === null || typeof given === "number" || typeof given === "string") {
    return given;
  }
  if (given instanceof ArrayBuffer) {
    return new Uint8Array(given);
  }
  if (ArrayBuffer.isView(given)) {
    return new Uint8Array(given.buffer, given.byteOffset, given.byteLength);
  }
  throw new TypeError(`a binding is null, a number, a string or bytes, not ${typeof given}`);
}

function refuse(sql: string): void {
  const [, word] = REFUSED.exec(sql) ?? [];
  if (word !== undefined) {
    throw new Error(`${word.toUpperCase()} is not allowed: use ctx.storage.transactionSync for a transaction`);
  }
}

function isOne(sql: string): boolean {
  const end = sql.indexOf(";");
  return end === -1 || isOnlySpace(sql.slice(end + 1));
}

function isOnlySpace(sql: string): boolean {
  return sql.trim() === "";
}
