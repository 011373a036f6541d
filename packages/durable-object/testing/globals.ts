import type { TestClock } from "./clock.js";

type Callback = (...args: unknown[]) => void;

/** Handles of virtual timeouts begin here, far from those of Node. */
const FIRST_HANDLE = 2 ** 40;

/** What a virtual clock takes the place of. */
export class Globals {
  readonly #clock: TestClock;
  readonly #Date = globalThis.Date;
  readonly #now = performance.now.bind(performance);
  readonly #immediate = globalThis.setImmediate;
  readonly #timeouts = new Map<number, number>();
  readonly #undo: (() => void)[] = [];
  #lastHandle = FIRST_HANDLE;
  #random: number;

  constructor(clock: TestClock, seed: number) {
    this.#clock = clock;
    this.#random = seed >>> 0;
  }

  /** Real milliseconds, for differences. */
  realNow(): number {
    return this.#now();
  }

  /** One turn of the real loop. */
  turn(): Promise<void> {
    return new Promise((resolve) => void this.#immediate(resolve));
  }

  replace(): void {
    const clearTimeout = globalThis.clearTimeout as (handle: unknown) => void;
    const clear = (handle: unknown): void => {
      if (typeof handle === "number" && handle > FIRST_HANDLE) {
        this.#clear(handle);
      } else {
        clearTimeout(handle);
      }
    };
    this.#set(globalThis, "Date", this.#virtualDate());
    this.#set(globalThis, "setTimeout", (callback: Callback, ms?: number, ...args: unknown[]) =>
      this.#after(callback, ms ?? 0, args, false),
    );
    this.#set(globalThis, "setInterval", (callback: Callback, ms?: number, ...args: unknown[]) =>
      this.#after(callback, ms ?? 0, args, true),
    );
    this.#set(globalThis, "clearTimeout", clear);
    this.#set(globalThis, "clearInterval", clear);
    this.#set(performance, "now", () => this.#clock.elapsed);
    this.#set(crypto, "getRandomValues", (into: ArrayBufferView) => this.#draw(into));
  }

  restore(): void {
    for (const undo of this.#undo.splice(0).reverse()) {
      undo();
    }
  }

  #set(of: object, key: string, value: unknown): void {
    const own = Object.getOwnPropertyDescriptor(of, key);
    Object.defineProperty(of, key, { value, configurable: true, writable: true });
    this.#undo.push(() => {
      Reflect.deleteProperty(of, key);
      if (own !== undefined) {
        Object.defineProperty(of, key, own);
      }
    });
  }

  #virtualDate(): DateConstructor {
    const now = (): number => this.#clock.now;
    const virtual: DateConstructor = new Proxy(this.#Date, {
      construct: (real, args, made) =>
        Reflect.construct(real, args.length === 0 ? [now()] : args, made === virtual ? real : made) as object,
      apply: (real) => new real(now()).toString(),
      get: (real, key) => (key === "now" ? now : Reflect.get(real, key)),
    });
    return virtual;
  }

  #after(callback: Callback, ms: number, args: readonly unknown[], again: boolean): number {
    this.#lastHandle += 1;
    const handle = this.#lastHandle;
    const span = Number.isFinite(ms) ? Math.max(ms, again ? 1 : 0) : 0;
    const wait = (): void => {
      const event = this.#clock.at(this.#clock.now + span, () => {
        this.#timeouts.delete(handle);
        if (again) {
          wait();
        }
        callback(...args);
      });
      this.#timeouts.set(handle, event);
    };
    wait();
    return handle;
  }

  #clear(handle: number): void {
    const event = this.#timeouts.get(handle);
    if (event !== undefined) {
      this.#clock.forget(event);
      this.#timeouts.delete(handle);
    }
  }

  /** The same for the same seed (mulberry32). */
  #draw<T extends ArrayBufferView>(into: T): T {
    const bytes = new Uint8Array(into.buffer, into.byteOffset, into.byteLength);
    for (let index = 0; index < bytes.length; index += 1) {
      this.#random = (this.#random + 0x6d2b79f5) >>> 0;
      let mixed = Math.imul(this.#random ^ (this.#random >>> 15), this.#random | 1);
      mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
      bytes[index] = (mixed ^ (mixed >>> 14)) & 0xff;
    }
    return into;
  }
}
