// An object with tickets, for the tests: its options are those of the test that opens it.
import { SinkError, TimerObject, type BuiltIns, type LogEvent, type Settings, type Ticket, type TicketOptions, type Tickets } from "@dueline/durable-object/kinds";
import { TestObject, type TestClock } from "@dueline/durable-object/testing";

/** What is told to it stays where it is. */
const takesNothing = (): void => {
  throw new SinkError("unavailable", "not yet");
};

let options: TicketOptions | undefined = {};
let log: (event: LogEvent) => void;

export class Venue extends TimerObject<Record<string, never>> {
  constructor(ctx: DurableObjectState, env: unknown) {
    super(ctx, env);
    this.ctx.storage.sql.exec("CREATE TABLE IF NOT EXISTS written (text TEXT)");
  }
  protected override settings(): Settings {
    return { log };
  }
  protected override handlers(): Record<string, never> {
    return {};
  }
  protected override builtIns(): BuiltIns {
    if (options === undefined) {
      return {};
    }
    const { outbox } = options;
    return { tickets: options, ...(outbox === undefined ? {} : { outboxes: { [outbox]: takesNothing } }) };
  }
  get tickets(): Tickets {
    return this.timers.tickets;
  }
  /** Effects that write this. */
  writing(text: string): () => void {
    return () => void this.ctx.storage.sql.exec("INSERT INTO written VALUES (?)", text);
  }
  counts() {
    return this.timers.counts();
  }
}

/** Opens an object whose tickets have these options. */
export async function openVenue(
  clock: TestClock,
  wanted: TicketOptions = {},
  logger: (event: LogEvent) => void = () => undefined,
): Promise<TestObject<Venue>> {
  options = wanted;
  log = logger;
  return TestObject.open(clock, Venue);
}

/** Opens the object again without tickets, as behind a deploy that forgot them. */
export async function takeAway(venue: TestObject<Venue>): Promise<void> {
  options = undefined;
  await venue.restart();
}

/** Opens the object again with tickets that have no options. */
export async function giveBack(venue: TestObject<Venue>): Promise<void> {
  options = {};
  await venue.restart();
}

/** What effects have written, in their order. */
export function written(venue: TestObject<Venue>): unknown[] {
  return venue.sql("SELECT text FROM written ORDER BY rowid").map(({ text }) => text);
}

/** The ticket of a request that was not refused. */
export async function hold(
  venue: TestObject<Venue>,
  resource: string,
  ttl: number,
  more: object = {},
): Promise<Ticket> {
  const opened = await venue.instance.tickets.open({ resource, ttl, ...more });
  if (opened.outcome === "refused") {
    throw new Error(`refused: ${opened.reason}`);
  }
  return opened.ticket;
}

/** Whether an error has this code. */
export function coded(code: string): (error: unknown) => boolean {
  return (error) => (error as { code?: string }).code === code;
}
