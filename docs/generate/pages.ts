import { errorList } from './errors';
import { magicAmountLists } from './magic-amounts';
import { markLists, updateLists } from './operators';

/** Blocks of each page that the code writes, by the name in their marker. */
export function blocksByPage(): Record<string, Record<string, string>> {
  return {
    'docs/api.md': { errors: errorList(), ...magicAmountLists() },
    'docs/operators.md': { ...markLists(), ...updateLists() },
  };
}
