"""WebShop: products that are found, configured and bought in a shop of text pages.

Read ``shop_products`` (products, and WebShop's files), ``made_catalogue`` (products from a seed),
``purchase`` (goals and the reward), ``shop`` (pages and actions), ``shop_tasks`` (goals, splits), then ``webshop``.
"""

from coevo.envs.webshop.webshop import WebShop

__all__ = ["WebShop"]
