import { parseArgs } from 'node:util';
import { z } from 'zod';
import { describeError, OperationalError } from '../src/base/errors';
import { PROGRAM } from '../src/base/program';
import { LIBRARIES, VARIABLES } from '../src/variables';
import { type Inspect, NODE_PART_NAMES } from './parts';

export interface Variable {
  name: string;
  description: string;
  usual: string;
  alone: string;
  isLauncher: boolean;
}

const Meta = z.object({
  description: z.string(),
  usual: z.string().optional(),
  launcher: z.boolean().default(false),
});

/** @throws ZodError if a field lacks a description */
export function listFields(schema: z.ZodObject): Variable[] {
  return Object.entries(schema.shape).map(([name, field]) => {
    const { success, data } = z.safeParse(field, undefined);
    const known = data === undefined || data === '' ? 'none' : String(data);
    const standard = success ? known : 'required';
    const meta = Meta.parse(z.globalRegistry.get(field) ?? {});
    const { description, usual = standard, launcher: isLauncher } = meta;
    // Without a default in the schema, the code that reads the field has one.
    const alone = standard === 'none' && !isLauncher ? usual : standard;
    return { name, description, usual, alone, isLauncher };
  });
}

/** A library's variables count as one, by their common prefix. */
export function listVariables(): Variable[] {
  const ofLibraries = Object.entries(LIBRARIES).map(([name, description]) => {
    return { name, description, usual: 'none', alone: 'none', isLauncher: false };
  });
  return [...listFields(VARIABLES), ...ofLibraries];
}

const variables = listVariables().filter(({ isLauncher }) => !isLauncher);
const NAME_WIDTH = Math.max(...variables.map(({ name }) => name.length));

const lines = variables.map(({ name, usual, description }) => {
  const text = description.replace(/\[([^\]]+)\]\([^)]+\)/g, '$1').replaceAll('`', '');
  return `  ${name.padEnd(NAME_WIDTH)}  ${text} (default: ${usual})`;
});

export const USAGE = `${PROGRAM.start}: runs the whole service on this machine.

Finds or fetches Temporal and MongoDB, starts them, the api, the worker and the sandbox bank,
restarts a part that dies, and stops all on Ctrl-C or SIGTERM. The first start makes a demo
account and prints its keys.

  --inspect PART[:PORT]  lets a debugger attach to that process alone: api, worker or
                         sandbox_bank; port 9229 by default
  --watch                builds when a source changes and restarts what the change concerns;
                         the servers stay up. \`npm run dev\` is \`npm start -- --watch\`
  --help                 this text

Environment:
${lines.join('\n')}

A second stack runs next to the first with its own PORT, TEMPORAL_UI_PORT and DATA_DIR.
`;

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
  const isPort = /^\d{1,5}$/.test(port) && Number(port) > 0 && Number(port) <= 65_535;
  if (part === undefined || rest.length > 0 || !isPort) {
    throw new OperationalError(
      `--inspect ${text}: it takes ${NODE_PART_NAMES.join(', ')}, with :PORT if need be`,
    );
  }
  return { part, port: Number(port) };
}
