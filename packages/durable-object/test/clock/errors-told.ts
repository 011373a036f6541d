// What is told to `console.error` while a test runs: what a trap of the engine says, since whoever calls next is not
// told of it.

/** Takes what is told to the console as an error, as long as it watches. */
export class ErrorsTold {
  readonly #error = console.error;
  readonly told: unknown[] = [];

  constructor() {
    console.error = (said: unknown) => void this.told.push(said);
  }

  /** Those that say that the engine has trapped. */
  get traps(): unknown[] {
    return this.told.filter((said) => (said as { code?: string }).code === "crashed");
  }

  end(): void {
    console.error = this.#error;
  }
}
