import { z } from 'zod';
import { EvmSettings } from '../../connectors/evm/config';
import { httpSettings } from '../../connectors/http/definition';
import { settings as stripeSettings } from '../../connectors/stripe/settings';
import { listFields, listVariables } from '../../stack/usage';
import { errorList } from './errors';
import { authorityLists, listCredits, listFindings, remedyLists } from './operators';
import { assetTable, growthTable, magicAmountLists, roleList, variableTable } from './tables';

/** Blocks of each page that the code writes, by the name in their marker. */
export function blocksByPage(): Record<string, Record<string, string>> {
  return {
    'README.md': { variables: variableTable(listVariables()) },
    'docs/api.md': { assets: assetTable(), errors: errorList(), ...magicAmountLists() },
    'docs/connectors.md': { instructions: variableTable(listFields(z.object(httpSettings))) },
    'docs/dashboard.md': { roles: roleList() },
    'docs/evm.md': { settings: variableTable(listFields(EvmSettings), 'Field') },
    'docs/ledger.md': { findings: listFindings() },
    'docs/operations.md': { growth: growthTable() },
    'docs/operators.md': { ...remedyLists(), ...authorityLists(), credits: listCredits() },
    'docs/stripe.md': { settings: variableTable(listFields(z.object(stripeSettings))) },
  };
}
