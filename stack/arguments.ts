import { parseArgs } from 'node:util';
import { describeError, OperationalError } from '../src/base/errors';
import { type Inspect, NODE_PART_NAMES } from './parts';

/** Node's default, which debuggers try. */
const INSPECT_PORT = '9229';
const OPTIONS = {
  help: { type: 'boolean', short: 'h', default: false },
  inspect: { type: 'string' },
  watch: { type: 'boolean', default: false },
} as const;

/** @throws OperationalError naming the argument at fault */
export function readArguments(args: readonly string[]) {
  const { inspect, ...rest } = parseOptions(args);
  return { ...rest, inspect: inspect === undefined ? undefined : parseInspect(inspect) };
}

function parseOptions(args: readonly string[]) {
  try {
    return parseArgs({ args: [...args], options: OPTIONS }).values;
  } catch (error) {
    throw new OperationalError(`${describeError(error)}\nSee --help.`);
  }
}

function parseInspect(text: string): Inspect {
  const [name, port = INSPECT_PORT, ...rest] = text.split(':');
  const part = NODE_PART_NAMES.find((each) => each === name);
  if (part === undefined || rest.length > 0 || !isPort(port)) {
    throw new OperationalError(
      `--inspect ${text}: it takes ${NODE_PART_NAMES.join(', ')}, with :PORT if need be`,
    );
  }
  return { part, port: Number(port) };
}

function isPort(text: string): boolean {
  return /^\d{1,5}$/.test(text) && Number(text) > 0 && Number(text) <= 65_535;
}
