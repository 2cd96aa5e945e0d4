import { inBrowser, onContentUpdated } from 'vitepress';
// The fonts of the system, so that nothing more is loaded.
import theme from 'vitepress/theme-without-fonts';
import { showLanguage, watchTabs } from './tabs.mjs';
import './style.css';

export default {
  extends: theme,
  enhanceApp() {
    if (inBrowser) watchTabs();
  },
  setup() {
    onContentUpdated(showLanguage);
  },
};
