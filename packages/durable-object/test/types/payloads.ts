// Goal: the compiler refuses payloads that would not come back as they are, and no others. Method: that of `verbs.ts`.
import { TimerObject, Timers, type JsonPayloads, type Payloads } from "@dueline/durable-object";
import { TimerObject as WithKinds } from "@dueline/durable-object/kinds";

declare const ctx: DurableObjectState;

interface Seat {
  readonly row: string;
  readonly number: number;
}
interface Tree {
  readonly name: string;
  readonly parts?: readonly Tree[];
  readonly seats: Record<string, Seat>;
}
type Json = string | number | boolean | null | Json[] | { [key: string]: Json };
enum Size {
  Small,
  Large,
}
type Branded = string & { readonly brand?: "id" };

export type Sound = {
  nothing: undefined;
  text: string;
  literal: "a" | "b";
  seat: Seat;
  maybe: Seat | undefined;
  optional: { seat?: Seat; at: number | null };
  tree: Tree;
  json: Json;
  list: readonly [string, number][];
  size: Size;
  branded: { id: Branded };
  whatever: unknown;
  within: { whatever: unknown };
  any: any;
  bytes: Uint8Array;
  buffer: ArrayBuffer;
  either: { kind: "a"; a: string } | { kind: "b"; b: number[] };
};

export const sound = [new Timers<Sound>(ctx, {} as never), new Timers(ctx, {} as never), new Timers<Payloads>(ctx, {} as never)];
export abstract class OfSound extends TimerObject<Sound> {}
export abstract class OfSoundWithKinds extends WithKinds<Sound> {}
export abstract class OfNone extends TimerObject<{}> {}
/** One of kinds that are not known yet says so. */
export abstract class OfAny<P extends Payloads & JsonPayloads<P>> extends TimerObject<P> {}

class Money {
  constructor(readonly cents: number) {}
  inWords(): string {
    return `${this.cents} cents`;
  }
}

type Of<T> = { a: T };
export const wrong = [
  // @ts-expect-error It comes back as a text.
  new Timers<Of<Date>>(ctx, {} as never),
  // @ts-expect-error So it does within another.
  new Timers<Of<{ readonly at: { readonly begins?: Date }[] }>>(ctx, {} as never),
  // @ts-expect-error Or beside others.
  new Timers<Of<Seat | Date>>(ctx, {} as never),
  // @ts-expect-error It comes back empty.
  new Timers<Of<Map<string, number>>>(ctx, {} as never),
  // @ts-expect-error It comes back empty.
  new Timers<Of<{ names: Set<string> }>>(ctx, {} as never),
  // @ts-expect-error It has no JSON form.
  new Timers<Of<bigint>>(ctx, {} as never),
  // @ts-expect-error It has no JSON form.
  new Timers<Of<{ id: symbol }>>(ctx, {} as never),
  // @ts-expect-error It has no JSON form.
  new Timers<Of<{ done: () => void }>>(ctx, {} as never),
  // @ts-expect-error Its methods are lost.
  new Timers<Of<Money>>(ctx, {} as never),
  // @ts-expect-error Bytes are a payload of their own.
  new Timers<Of<{ bytes: Uint8Array }>>(ctx, {} as never),
];

// @ts-expect-error It comes back as a text.
export abstract class OfDates extends TimerObject<Of<Date>> {}
// @ts-expect-error It comes back as a text.
export abstract class OfDatesWithKinds extends WithKinds<Of<Date>> {}
