// The fonts of the system, so that nothing more is loaded.
import theme from 'vitepress/theme-without-fonts';
import './style.css';

export default theme;
