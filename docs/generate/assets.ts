import { ASSETS, formatUnits } from '../../src/domain/crypto/assets';
import { code, table } from './markdown';

/** Assets of crypto payments, and the balance from which each is settled daily. */
export function assetTable(): string {
  const rows = ASSETS.map(({ asset, network, decimals, settled_from }) => [
    code(asset),
    code(network),
    String(decimals),
    formatUnits(settled_from, { asset, network }),
  ]);
  return table(['Asset', 'Network', 'Digits', 'Settled daily from'], rows);
}
