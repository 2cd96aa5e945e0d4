import { ASSETS, formatUnits } from '../../src/domain/crypto/assets';
import { code, table } from './markdown';

export function assetTable(): string {
  const rows = ASSETS.map(({ asset, network, decimals, settled_from, least_deposit }) => [
    code(asset),
    code(network),
    String(decimals),
    formatUnits(settled_from, { asset, network }),
    formatUnits(least_deposit, { asset, network }),
  ]);
  return table(['Asset', 'Network', 'Digits', 'Settled from', 'Least deposit'], rows);
}
