// All CSS selectors of Streamlit's own elements that the scripts use. tests/e2e/test_selectors.py checks each of them.

export const APP = '[data-testid="stApp"]';
export const MAIN = '[data-testid="stMain"]';
export const PAGE_BODY = '[data-testid="stMainBlockContainer"]';
export const SENTENCES = '[data-testid="stMain"] [data-testid="stMarkdownContainer"] :is(p, li)';
export const CODE_BLOCKS = '[data-testid="stCode"] pre';
export const TABLES = ':is([data-testid="stDataFrame"], [data-testid="stTable"])';
export const FIGURES = ':is([data-testid="stBidiComponentRegular"], [data-testid="stBidiComponentIsolated"])';
export const POPOVER_BUTTON = '[data-testid="stPopoverButton"]';
export const SIDEBAR_HEADER = '[data-testid="stSidebarHeader"]';
export const SIDEBAR_CONTROLS = '[data-testid="stSidebar"] :is(button, input, textarea)';
export const APP_HEADER = '[data-testid="stHeader"]';
export const MENU = '[data-testid="stTopNav"]';
export const MENU_SECTIONS = '[data-testid="stTopNavSection"]';
export const MENU_LINKS = ':is([data-testid="stTopNavLink"], [data-testid="stSidebarNavLink"])';
export const TOOLBAR_ACTIONS = '[data-testid="stToolbarActions"]';
export const EXPAND_SIDEBAR = '[data-testid="stExpandSidebarButton"]';
/** The attribute with the state of the connection to the server, and its value while the server is connected. */
export const CONNECTION = "data-test-connection-state";
export const CONNECTED = "CONNECTED";
/** The prefix of the class that Streamlit gives to an element with a key. */
export const KEY_PREFIX = "st-key-";
