import { z } from 'zod';
import { Environment as Evm } from '../../connectors/evm/config';
import { Environment as SandboxBank } from '../../connectors/sandbox-bank/config';
import { Environment as Service } from '../../src/config';
import { Environment as Launcher } from '../../stack/config';
import { USAGE } from '../../stack/usage';
import { EVM_VARIABLES, VARIABLES } from '../../stack/variables';
import { Environment as Health } from '../../worker/health';
import { Environment as Worker } from '../../worker/tuning';
import { Environment as Version } from '../../worker/versioning';

/** Read beside the schemas: where fetched servers are kept. */
const OTHERS = ['CACHE_DIR', 'APPROVAL_LIMIT'];
const ALONE = [Service, SandboxBank, Worker, Health, Version];

const namesOf = (schema: z.ZodObject) => Object.keys(schema.shape);

/** Defaults of a schema; a field without one is left out. */
function defaultsOf(schema: z.ZodObject): [string, string][] {
  return Object.entries(schema.shape).flatMap(([name, field]) => {
    const value = z.safeParse(field, undefined).data;
    return value === undefined || value === '' ? [] : [[name, String(value)] as [string, string]];
  });
}

test('the list has every variable that is read, each once', () => {
  const read = new Set([...[...ALONE, Launcher].flatMap(namesOf), ...OTHERS]);
  expect(VARIABLES.map(({ name }) => name).sort()).toEqual([...read].sort());
});

test('a variable of the launcher has the default that the list tells', () => {
  const told = Object.fromEntries(VARIABLES.map(({ name, usual }) => [name, usual]));
  for (const [name, value] of defaultsOf(Launcher))
    expect([name, told[name]]).toEqual([name, value]);
});

test('a variable of a process has the default that the list tells', () => {
  const told = Object.fromEntries(VARIABLES.map(({ name, usual, alone = usual }) => [name, alone]));
  for (const [name, value] of ALONE.flatMap(defaultsOf)) {
    expect([name, told[name]]).toEqual([name, value]);
  }
});

test('the list of the Ethereum connector has what it reads beside the others, with its defaults', () => {
  const shared = new Set(VARIABLES.map(({ name }) => name));
  const own = namesOf(Evm).filter((name) => !shared.has(name));
  expect(EVM_VARIABLES.map(({ name }) => name).sort()).toEqual(own.sort());
  const told = Object.fromEntries(EVM_VARIABLES.map(({ name, usual }) => [name, usual]));
  for (const [name, value] of defaultsOf(Evm).filter(([each]) => !shared.has(each))) {
    expect([name, told[name]]).toEqual([name, value]);
  }
});

test('--help lists every variable that the launcher heeds, and no other', () => {
  const listed = [...USAGE.matchAll(/^ {2}([A-Z_]+) +\S/gm)].map(([, name]) => name);
  const heeded = VARIABLES.filter(({ decided }) => decided !== true).map(({ name }) => name);
  expect(listed).toEqual(heeded);
});
