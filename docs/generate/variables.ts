import type { Variable } from '../../stack/usage';
import { code, table } from './markdown';

/** Every variable of a list with its default. */
export function variableTable(variables: readonly Variable[], head = 'Variable'): string {
  const rows = variables.map(({ name, usual, alone, description }) => [
    code(name),
    alone === usual ? value(usual) : `${value(usual)}; alone ${value(alone)}`,
    description,
  ]);
  return table([head, 'Default', 'What it is'], rows);
}

/** A value stands as code, a word about it does not. */
function value(text: string): string {
  return text.includes(' ') || text === 'none' || text === 'required' ? text : code(text);
}
