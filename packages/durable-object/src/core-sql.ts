// SQL for the core, in as few calls between it and JavaScript as there can be: each costs as much as a row.

type Statement = (statement: string, ...bindings: SqlStorageValue[]) => Cursor;
type Cursor = SqlStorageCursor<Record<string, SqlStorageValue>>;
/** Bytes in the module's memory: the platform has read them when it returns. */
type Lent = SqlStorageValue & Uint8Array;

/** Bytes behind which a page of rows ends, whatever it holds: a row may have 2 MB. */
const PAGE_BYTES = 64 * 1_024;
/** In front of a column's number, of its bytes, and in place of anything else. */
const NUMBER = 0;
const BYTES = 1;
const OTHER = 2;
const NUMBER_BYTES = 9;
const HEAD_BYTES = 5;

let thrown: unknown;

/** What the last statement threw. */
export function lastThrown(): unknown {
  const last = thrown;
  thrown = undefined;
  return last;
}

/** Runs a statement for a row's key; the number of rows that it wrote, or -1 if it threw. */
export function writeKey(sql: { readonly exec: Statement }, statement: string, part: number, key: Lent): number {
  try {
    return sql.exec(statement, part, key).rowsWritten;
  } catch (error) {
    thrown = error;
    return -1;
  }
}

/** As {@link writeKey}, for a row. */
export function writeRow(sql: { readonly exec: Statement }, statement: string, part: number, key: Lent, value: Lent): number {
  try {
    return sql.exec(statement, part, key, value).rowsWritten;
  } catch (error) {
    thrown = error;
    return -1;
  }
}

/** As {@link writeRow}, for one that goes in beside the wake of this kind and time. */
export function writeRowBeside(
  sql: { readonly exec: Statement },
  statement: string,
  part: number,
  key: Lent,
  value: Lent,
  kind: number,
  at: number,
): number {
  try {
    return sql.exec(statement, part, key, value, kind, at).rowsWritten;
  } catch (error) {
    thrown = error;
    return -1;
  }
}

/** Runs a statement whose bindings are numbers. Most are those of a wake, and spreading them would cost more. */
export function execNumbers(sql: { readonly exec: Statement }, statement: string, numbers: Float64Array): Cursor {
  const [kind = 0, at = 0, part = 0] = [numbers[0], numbers[1], numbers[2]];
  return numbers.length === 3 ? sql.exec(statement, kind, at, part) : sql.exec(statement, ...numbers);
}

let page = new Uint8Array(2 * PAGE_BYTES);
let numbers = new DataView(page.buffer);

/** Makes room for so many bytes more behind those that are there. */
function room(length: number, more: number): void {
  if (length + more > page.length) {
    const larger = new Uint8Array(2 * (length + more));
    larger.set(page.subarray(0, length));
    page = larger;
    numbers = new DataView(page.buffer);
  }
}

/**
 * The next rows of a cursor, one behind the other: each its length, then its columns in the order of their names. In
 * front of them 1 if there are no more, else 0. They lie where the next page will: whoever is given them copies them.
 */
export function nextRows(cursor: Cursor): Uint8Array {
  if (page.length > 8 * PAGE_BYTES) {
    page = new Uint8Array(2 * PAGE_BYTES);
    numbers = new DataView(page.buffer);
  }
  let length = 1;
  page[0] = 0;
  while (length < PAGE_BYTES) {
    const next = cursor.next();
    if (next.done === true) {
      page[0] = 1;
      break;
    }
    const begin = length;
    room(length, 4);
    length += 4;
    for (const column of Object.values(next.value)) {
      length = append(length, column);
    }
    numbers.setUint32(begin, length - begin - 4, true);
  }
  return page.subarray(0, length);
}

function append(at: number, column: SqlStorageValue): number {
  if (typeof column === "number") {
    room(at, NUMBER_BYTES);
    page[at] = NUMBER;
    numbers.setFloat64(at + 1, column, true);
    return at + NUMBER_BYTES;
  }
  if (column instanceof ArrayBuffer) {
    const { byteLength } = column;
    room(at, HEAD_BYTES + byteLength);
    page[at] = BYTES;
    numbers.setUint32(at + 1, byteLength, true);
    page.set(new Uint8Array(column), at + HEAD_BYTES);
    return at + HEAD_BYTES + byteLength;
  }
  room(at, 1);
  page[at] = OTHER;
  return at + 1;
}
