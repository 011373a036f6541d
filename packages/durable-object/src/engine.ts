import { Instance } from "./instance.js";

/** What a build of the WebAssembly module exports. */
export interface Module {
  readonly ObjectCore: {
    open(storage: DurableObjectStorage, host: unknown, kinds: object[], settings: object): Promise<unknown>;
  };
  poll_task(task: number): void;
  __wbg_reset_state(): void;
}

/** One build of the module in an isolate, and the instance of it that works. */
export class Engine {
  #current: Instance;

  constructor(readonly module: Module) {
    this.#current = new Instance(this);
  }

  /** The instance that works. */
  get current(): Instance {
    return this.#current;
  }

  /** Puts a new instance in the place of the one that works. */
  renew(): void {
    this.#current = new Instance(this);
    this.module.__wbg_reset_state();
  }
}
