import { z } from 'zod';
import { EvmSettings } from '../../connectors/evm/config';
import { httpSettings } from '../../connectors/http/settings';
import { LIBRARIES, LIBRARY_VARIABLES } from '../../src/variables';
import { listFields, listVariables, USAGE } from '../../stack/usage';

test('there are at most 47 variables next to those of libraries, each with a description', () => {
  const variables = listVariables();
  const own = variables.filter(({ name }) => !(name in LIBRARIES));
  expect(own.length).toBeLessThanOrEqual(47);
  const settings = [...listFields(EvmSettings), ...listFields(z.object(httpSettings))];
  for (const { description } of [...variables, ...settings]) {
    expect(description).not.toBe('');
  }
});

test('a variable of a library is described with the others of its library', () => {
  const beginnings = Object.keys(LIBRARIES).map((name) => name.replace('*', ''));
  const names = Object.keys(LIBRARY_VARIABLES.shape);
  expect(names.filter((name) => !beginnings.some((each) => name.startsWith(each)))).toEqual([]);
});

test('a default is that of the schema, unless npm start has another', () => {
  expect(listVariables()).toContainEqual(
    expect.objectContaining({ name: 'MONGODB_URI', usual: 'none', alone: 'required' }),
  );
  expect(listVariables()).toContainEqual(
    expect.objectContaining({ name: 'RATE_LIMIT_PER_SECOND', usual: '500', alone: '500' }),
  );
});

test('--help lists every variable that the launcher applies, and no other', () => {
  const listed = [...USAGE.matchAll(/^ {2}([A-Z_*]+) +\S/gm)].map(([, name]) => name);
  const applied = listVariables().filter(({ isLauncher }) => !isLauncher);
  expect(listed).toEqual(applied.map(({ name }) => name));
});
