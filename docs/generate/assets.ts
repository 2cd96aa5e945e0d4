import { ASSETS, formatUnits } from '../../src/domain/crypto/assets';
import { code, table } from './markdown';

export function assetTable(): string {
  const rows = ASSETS.map(({ asset, network, decimals, settled_from }) => [
    code(asset),
    code(network),
    String(decimals),
    formatUnits(settled_from, { asset, network }),
  ]);
  return table(['Asset', 'Network', 'Digits', 'Settled daily from'], rows);
}
