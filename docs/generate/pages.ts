import { join } from 'node:path';
import { EvmSettings } from '../../connectors/evm/config';
import { listFields, listVariables } from '../../stack/usage';
import { assetTable } from './assets';
import { errorList } from './errors';
import { magicAmountLists } from './magic-amounts';
import { remedyLists, updateLists } from './operators';
import { receiverBlock } from './receiver';
import { roleTable } from './roles';
import { variableTable } from './variables';

/**
 * Blocks of each page that the code writes, by the name in their marker.
 * @param root the repository's folder
 */
export function blocksByPage(root: string): Record<string, Record<string, string>> {
  return {
    'README.md': { variables: variableTable(listVariables()) },
    'docs/api.md': { assets: assetTable(), errors: errorList(), ...magicAmountLists() },
    'docs/dashboard.md': { roles: roleTable() },
    'docs/evm.md': { settings: variableTable(listFields(EvmSettings), 'Field') },
    'docs/operators.md': { ...remedyLists(), ...updateLists() },
    'docs/webhooks.md': { receiver: receiverBlock(join(root, 'docs/examples/receiver.mjs')) },
  };
}
