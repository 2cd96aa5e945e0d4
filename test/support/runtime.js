const { AsyncLocalStorage } = require('node:async_hooks');
const { Script } = require('node:vm');
const { default: Runtime } = require('jest-runtime');

/** Scripts by place and text, until the process ends. */
const scripts = new Map();

/** ES modules that wait as they load, which Jest cannot: they are loaded once, outside its contexts. */
const WAITING = ['libxml2-wasm'];

/** Storages in use in the file that runs. */
const storages = new Set();

for (const name of ['run', 'enterWith']) {
  const use = AsyncLocalStorage.prototype[name];
  AsyncLocalStorage.prototype[name] = function (...args) {
    storages.add(this);
    return use.apply(this, args);
  };
}

/**
 * Compiles a module once for all test files of a process. Each file evaluates its modules again, in a
 * context of its own; only the parsing is shared, which V8 would else repeat for each file: 40 unit
 * files took 25 s of processor time in one worker, and 33 s without. Storages of a file that has
 * ended are switched off: Node.js would pass each of them on at every promise of all later files.
 */
module.exports = class SharedScripts extends Runtime {
  constructor(config, environment, ...more) {
    super(config, environment, ...more);
    const { executor } = this;
    const compile = executor.compile.bind(executor);
    executor.compile = (source, filename) => {
      const context = environment.getVmContext();
      // A script that imports as it runs is bound to the context that it was compiled for.
      if (context === null || source.includes('import(')) return compile(source, filename);
      const script = sharedScript(source, filename, executor.injectedModuleParameters);
      return script?.runInContext(context) ?? compile(source, filename);
    };
  }

  teardown() {
    for (const storage of storages) storage.disable();
    storages.clear();
    return super.teardown();
  }

  /** What `import()` calls once it is compiled; it waits for the promise. */
  requireModuleOrMock(from, name) {
    if (!WAITING.includes(name)) return super.requireModuleOrMock(from, name);
    return Object.assign(import(name), { __esModule: true });
  }
};

function sharedScript(source, filename, parameters) {
  const head = `(function (${parameters.join()}) {`;
  const key = `${filename}\0${head}`;
  const known = scripts.get(key);
  if (known?.source === source) return known.script;
  try {
    const script = new Script(`${head}${source}\n})`, { filename, columnOffset: -head.length });
    scripts.set(key, { source, script });
    return script;
  } catch {
    // Jest reports a fault in its own words.
    return undefined;
  }
}
