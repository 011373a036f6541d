// What lies in the engine's tables, read past the engine.

/** A row of a timer: its kind's number, when it is looked at next, and key and value as they are stored. */
export interface TimerRow {
  readonly kind: number;
  readonly nextAt: number;
  readonly key: string;
  readonly value: string;
}

const KIND_AT = 2;
const NEXT_AT = 3;

function hex(bytes: ArrayBuffer): string {
  return Array.from(new Uint8Array(bytes), (byte) => byte.toString(16).padStart(2, "0")).join("");
}

/** Every row of a timer, in the order of kinds and times. */
export function timerRows(sql: SqlStorage): TimerRow[] {
  const rows = sql.exec<{ key: ArrayBuffer; value: ArrayBuffer }>(
    "SELECT key, value FROM dueline_kv WHERE key >= x'7700' AND key < x'7701' ORDER BY key",
  );
  return rows.toArray().map(({ key, value }) => {
    const view = new DataView(key);
    return {
      kind: view.getUint8(KIND_AT),
      nextAt: Number(view.getBigUint64(NEXT_AT)),
      key: hex(key),
      value: hex(value),
    };
  });
}

/** How many rows of timers there are. */
export function timerCount(sql: SqlStorage): number {
  return sql
    .exec<{ n: number }>("SELECT COUNT(*) AS n FROM dueline_kv WHERE key >= x'7700' AND key < x'7701'")
    .one().n;
}

/** The earliest time at which a timer wants to be looked at; `null` without timers. */
export function earliest(sql: SqlStorage): number | null {
  const times = timerRows(sql).map(({ nextAt }) => nextAt);
  return times.length === 0 ? null : Math.min(...times);
}

/** The alarm beside the rows, and whether it comes early enough for them. */
export interface Standing {
  readonly alarm: number | null;
  readonly earliest: number | null;
  readonly now: number;
  readonly isSound: boolean;
}

/** Reads both in one turn. An alarm for what is overdue lies up to a millisecond ahead of the present. */
export async function standing(storage: DurableObjectStorage): Promise<Standing> {
  const alarm = await storage.getAlarm();
  const now = Date.now();
  const first = earliest(storage.sql);
  const isSound = first === null || (alarm !== null && alarm <= Math.max(first, now + 1));
  return { alarm, earliest: first, now, isSound };
}
