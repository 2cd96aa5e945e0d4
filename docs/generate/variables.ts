import { VARIABLES } from '../../stack/variables';
import { code, table } from './markdown';

/** Every variable of the environment. */
export function variableTable(): string {
  const rows = VARIABLES.map(({ name, usual, alone, text }) => [
    code(name),
    value(usual),
    alone === undefined ? '' : value(alone),
    text,
  ]);
  return table(['Variable', 'Under `npm start`', 'A process alone', 'What it is'], rows);
}

/** A value stands as code, a word about it does not. */
function value(text: string): string {
  return text.includes(' ') || text === 'none' || text === 'required' ? text : code(text);
}
